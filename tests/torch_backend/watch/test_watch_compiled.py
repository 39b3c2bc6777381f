"""watch() and what does not go through torch's dispatcher: it changes nothing, and what it could not see is in its verdict."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from warfence.core.errors import InputError
from warfence.host.lanes import WorkerLane
from warfence.races.check.log_file import read_log
from warfence_torch import watch
from warfence_torch.tools.watching import compiled_calls

KV = torch.arange(64.0).reshape(8, 8)


def compiled(fn: Callable[..., Any], **how: Any) -> tuple[Callable[..., Any], list[int]]:
    hits = [0]

    def backend(module: Callable[..., object], example: object) -> Callable[..., object]:
        def run(*args: object) -> object:
            hits[0] += 1
            return module(*args)

        return run

    return torch.compile(fn, backend=backend, **how), hits


@pytest.fixture
def table() -> Tensor:
    return torch.arange(4)


@pytest.mark.parametrize("fullgraph", [False, True])
def test_compiled_functions_stay_compiled_under_a_watch_and_after_it(table: Tensor, fullgraph: bool) -> None:
    fn, hits = compiled(lambda t: KV[t].sin(), fullgraph=fullgraph)
    with watch(shared={"table": table}) as log:
        fn(table), fn(table)
        table.clone()
    assert hits == [2]
    fn(table)
    assert hits == [3]
    assert [event.kind for event in log.log.events] == ["read"]
    report = log.check()
    assert report.verdict == "incomplete"
    assert "What the compiled function called at " in report.missed[0]
    assert "test_watch_compiled.py:" in report.missed[0]


def test_a_function_that_breaks_its_graph_and_calls_another_one(table: Tensor) -> None:
    inner, inner_hits = compiled(lambda t: KV[t].cos())

    def fn(t: Tensor) -> Tensor:
        rows = KV[t].sin()
        torch._dynamo.graph_break()
        return rows + inner(t)

    outer, _ = compiled(fn)
    with watch(shared={"table": table}) as log:
        outer(table)
        table.clone()
        with pytest.raises(ZeroDivisionError):
            compiled(lambda t: t / 0 if 1 // 0 else t)[0](table)
        table.clone()
    assert [event.kind for event in log.log.events] == ["read", "read"]
    assert torch.equal(outer(table), fn(table))
    assert inner_hits[0] >= 1


def test_where_torch_is_built_otherwise_compiled_functions_run_as_written(
    table: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_calls, "WRAPPER", "another_wrapper")
    fn, hits = compiled(lambda t: KV[t].sin())
    with watch(shared={"table": table}) as log:
        fn(table)
    assert hits == [0]
    assert [event.kind for event in log.log.events] == ["read"]
    assert any("ran as they were written" in sentence for sentence in log.log.unseen)
    fn(table)
    assert hits == [1]


def test_an_operation_of_higher_order_runs_and_makes_the_verdict_incomplete(table: Tensor) -> None:
    with watch(shared={"table": table}) as log:
        rows = torch.cond(table.sum() > 0, lambda: KV[table], lambda: KV[table] * 2, ())
    assert torch.equal(rows, KV[table])
    assert log.check().verdict == "incomplete"


def test_a_clean_log_is_clean_and_the_verdict_survives_the_file(table: Tensor, tmp_path: Any) -> None:
    with watch(shared={"table": table}) as log:
        table.clone()
    assert log.check().verdict == "clean"
    fn, _ = compiled(lambda t: KV[t])
    with watch(shared={"table": table}, path=tmp_path / "log") as log:
        fn(table)
    assert read_log(tmp_path / "log").missed == log.log.missed != ()


def test_a_python_thread_that_touches_watched_memory_is_in_the_verdict(table: Tensor) -> None:
    with watch(shared={"table": table}) as log, ThreadPoolExecutor(1, "prefetch") as pool:
        pool.submit(lambda: KV.clone()).result()
    assert log.check().verdict == "clean"
    fn, hits = compiled(lambda t: KV[t].sin())
    with watch(shared={"table": table}) as log, ThreadPoolExecutor(1, "prefetch") as pool:
        pool.submit(table.clone).result()
        pool.submit(fn, table).result()
    report = log.check()
    assert report.verdict == "incomplete"
    assert report.missed[0].startswith("What thread 'prefetch_0' does with watched memory")
    assert hits == [1]


def test_a_thread_that_outlives_the_watch_keeps_its_compiled_functions(table: Tensor) -> None:
    fn, hits = compiled(lambda t: KV[t].sin())
    with ThreadPoolExecutor(1) as pool:
        with watch(shared={"table": table}):
            pool.submit(table.clone).result()
        for _ in range(2):
            pool.submit(fn, table).result()
        assert hits == [2]
        with watch(shared={"table": table}) as log:
            fn(table)
            table.clone()
            pool.submit(fn, table).result()
        assert [event.kind for event in log.log.events] == ["read"]
        pool.submit(fn, table).result()
    fn(table)
    assert hits == [6]


def test_a_host_lane_that_starts_under_the_watch_is_a_lane_and_no_thread(table: Tensor) -> None:
    with watch(shared={"table": table}) as log:
        lane = WorkerLane("forward")
        lane.submit(lambda: table.clone())
        lane.synchronize()
        lane.close()
    assert log.check().verdict == "clean"
    assert [event.lane for event in log.log.events if event.kind == "read"] == ["forward"]


def test_a_finished_watch_lets_go_of_graphs(on_cuda: None) -> None:
    table = torch.arange(4).cuda()
    graph = torch.cuda.CUDAGraph()
    log = watch(shared={"table": table}, names={graph: "decode"})
    gc.collect()
    gc.disable()
    try:
        with log:
            with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
                table + 1
            graph.replay()
        dead = weakref.ref(graph)
        del graph
        assert dead() is None, "something still holds the graph: the collector would end it in the middle of a capture"
        ended = weakref.ref(log)
        del log
        assert ended() is None, "the watch is in a cycle"
    finally:
        gc.enable()


def test_eager_launches_of_triton_are_reads_that_may_be_writes(table: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    class JITFunction:
        def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> str:
            return "ran"

    package, jit = ModuleType("triton"), ModuleType("triton.runtime.jit")
    package.__spec__ = SimpleNamespace(loader=None)
    jit.JITFunction = JITFunction
    for name, module in (
        ("triton", package),
        ("triton.runtime", ModuleType("triton.runtime")),
        ("triton.runtime.jit", jit),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    kernel = JITFunction()
    kernel.__name__ = "paged"
    with watch(shared={"table": table}) as log:
        assert kernel.run(table[1:], KV, 3, grid=(1,), warmup=False) == "ran"
        kernel.run(table, grid=(1,), warmup=True)
    (event,) = log.log.events
    assert (event.kind, event.stage, event.begin, event.end) == ("read", "paged", 1, 4)
    report = log.check()
    assert report.verdict == "incomplete"
    assert "Whether Triton's kernel 'paged', launched at " in report.missed[0]


@pytest.mark.parametrize("given", [5, torch.ones(3), None])
def test_what_is_no_list_of_tensors_is_told_in_a_sentence(given: Any) -> None:
    with pytest.raises(InputError, match=r"shared is of type \w+; give the tensors in a list, or by name"):
        watch(given)
