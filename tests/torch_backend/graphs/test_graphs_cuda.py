"""Long, since every source of kernels is one case of the same proof.

read_graph, measure_graph, plant_graph and plant on a device, over kernels of any source; each plant is proved.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.torch_backend.graphs.proof import captured, proved
from tests.torch_backend.graphs.real import NAMES, paged_step, static_step
from warfence.core.backend import FORWARD, SCHEDULE
from warfence.core.errors import InputError
from warfence.parity.graph import landed_at
from warfence_torch import measure_graph, plant, plant_graph, read_graph, watch
from warfence_torch.backend import TorchBackend
from warfence_torch.tools.graphs.driver import raw_graph
from warfence_torch.tools.graphs.nodes import list_nodes
from warfence_torch.tools.graphs.plant import BEHIND

pytestmark = pytest.mark.gpu

ROWS, D, N, PAGES, LAYERS, LAST = 8, 256, 16, 64, 6, 3


class Step:
    """Layers of matrix products, the first of them with attention over the page table."""

    def __init__(self, compiled: bool = False) -> None:
        torch.manual_seed(0)
        self.table = torch.randint(0, PAGES, (ROWS, N), dtype=torch.int32, device="cuda")
        self.kv = torch.randn(PAGES, D, device="cuda")
        self.weights = [torch.randn(D, D, device="cuda") * 0.05 for _ in range(LAYERS)]
        self.x = torch.randn(ROWS, D, device="cuda")
        self.layer = torch.compile(layer) if compiled else layer
        self.shared = {"page_table": self.table}

    def __call__(self) -> Tensor:
        from tests.torch_backend.graphs.triton_kernels import attend

        h = self.x
        for i, w in enumerate(self.weights):
            if i <= LAST:
                h = h + attend(self.table, self.kv, h)
            h = self.layer(h, w)
        return h.clone()


def layer(h: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(h @ w) + torch.nn.functional.gelu(h) * 0.1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiled", [False, True])
def test_triton_kernels_are_found_measured_and_planted(compiled: bool) -> None:
    step = Step(compiled)
    graph, output = captured(step)
    found = read_graph(graph, step.shared)
    assert [op.name for op in found.boundary.reads] == ["paged"] * (LAST + 1)
    measured = measure_graph(graph, step.shared, output)
    assert measured.measured.last == (found.boundary.after.position,)
    assert measured.launches <= 2 * len(found.nodes).bit_length() + 1
    proved(graph, step.shared, output)
    planted = plant(step, step.shared)
    assert planted.boundary.after.name == "paged"
    assert [line for line in planted.report() if line.startswith("checked: ")], planted.report()


def test_the_marker_opens_the_barrier_while_the_graph_stands_behind_it() -> None:
    step = Step()
    graph, output = captured(step)
    planted = plant_graph(graph, step.shared, output, gated=True)
    backend = TorchBackend("cuda")
    schedule = backend.lane(SCHEDULE)

    def write() -> None:
        with schedule.current:
            step.table.copy_(step.table.clone())

    assert landed_at(planted, backend.lane(FORWARD), schedule, write) == BEHIND
    backend.close()


def test_a_read_by_an_address_in_memory_is_measured_later_than_found() -> None:
    from tests.torch_backend.graphs.triton_kernels import fetch

    step = Step()
    addresses = torch.tensor([step.table.data_ptr()], dtype=torch.int64, device="cuda")
    graph, output = captured(lambda: torch.cat([step(), fetch(addresses, step.kv)[None]]))
    measured = measure_graph(graph, step.shared, output)
    assert measured.boundary.after.name == "by_address"
    assert any("measured later than found" in line for line in measured.lines())
    assert "by_address" in proved(graph, step.shared, output).report()[-3]
    late = plant(lambda: torch.cat([step(), fetch(addresses, step.kv)[None]]), step.shared)
    assert late.boundary.after.name == "by_address"


def test_branches_of_side_streams() -> None:
    step, side = Step(), torch.cuda.Stream()

    def fn() -> Tensor:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            theirs = step.kv[step.table[0].long()] * 2
        ours = step.kv[step.table[1].long()].sin()
        torch.cuda.current_stream().wait_stream(side)
        return ours + theirs

    graph, output = captured(fn)
    assert len(read_graph(graph, step.shared).boundary.last) == 2
    assert len(measure_graph(graph, step.shared, output).measured.last) == 2
    assert len(proved(graph, step.shared, output).boundary.last) == 2


def cupy_rows(table: Tensor, kv: Tensor) -> Callable[[], Tensor]:
    cupy = pytest.importorskip("cupy")
    ours, out = cupy.asarray(table.view(-1)), torch.empty(table.numel(), device="cuda")
    theirs = cupy.asarray(out)
    double = cupy.ElementwiseKernel("int32 x", "float32 y", "y = 2 * x", "double_it")

    def fn() -> Tensor:
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            double(ours, theirs)
        return out + 1

    return fn


def numba_rows(table: Tensor, kv: Tensor) -> Callable[[], Tensor]:
    np.row_stack = getattr(np, "row_stack", np.vstack)  # numba looks for it, new numpy has it no more
    cuda = pytest.importorskip("numba.cuda")
    out = torch.empty(table.numel(), device="cuda")

    @cuda.jit
    def double_it(x, y):
        i = cuda.grid(1)
        if i < x.shape[0]:
            y[i] = 2 * x[i]

    ours, theirs = cuda.as_cuda_array(table.view(-1)), cuda.as_cuda_array(out)

    def fn() -> Tensor:
        stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
        double_it[4, 64, stream](ours, theirs)
        return out + 1

    return fn


def standalone_rows(table: Tensor, kv: Tensor) -> Callable[[], Tensor]:
    from torch.fx.experimental.proxy_tensor import make_fx

    with torch.no_grad():
        traced = make_fx(lambda t: (kv[t.long()] + 1).sin().sum(1))(table)
        artifact = torch._inductor.standalone_compile(traced, [table])
    return lambda: artifact(table)[0] * 2


def flex_rows(table: Tensor, kv: Tensor) -> Callable[[], Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    attend = torch.compile(flex_attention)
    q = torch.randn(1, 2, 128, 64, device="cuda")
    flat = table.view(-1)

    def bias(score: Tensor, b: Tensor, h: Tensor, qi: Tensor, ki: Tensor) -> Tensor:
        return score + flat[ki] * 0.01

    return lambda: attend(q, q, q, score_mod=bias)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [cupy_rows, numba_rows, standalone_rows, flex_rows])
def test_kernels_that_no_dispatcher_sees(make: Callable[[Tensor, Tensor], Callable[[], Tensor]]) -> None:
    step = Step()
    fn = make(step.table, step.kv)
    graph, output = captured(fn)
    proved(graph, step.shared, output)
    planted = plant(fn, step.shared)
    assert planted.boundary.after is not None
    assert any(line.startswith("checked: ") for line in planted.report())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["static", "paged", "compiled"])
def test_decode_steps_of_real_models(name: str, kind: str) -> None:
    fn, shared, state = static_step(name) if kind == "static" else paged_step(name, kind == "compiled")
    graph, output = captured(fn)
    planted = proved(graph, shared, output, state)
    assert planted.boundary.after is not None


def test_compiled_calls_are_as_before_afterwards() -> None:
    step, calls = Step(), [0]

    def backend(module: Any, example: Any) -> Any:
        def run(*args: Any) -> Any:
            calls[0] += 1
            return module(*args)

        return run

    step.layer = torch.compile(layer, backend=backend)
    with torch.no_grad():
        step()
        plant(step, step.shared)
        before = calls[0]
        step()
    assert calls[0] == before + LAYERS


@pytest.mark.filterwarnings("ignore")
def test_the_fast_path_of_a_transformer_stays() -> None:
    torch.manual_seed(0)
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 1).eval().cuda()
    mask, x = torch.tensor([[False, True]], device="cuda"), torch.randn(1, 2, 8, device="cuda")
    try:
        planted = plant(lambda: encoder(x, src_key_padding_mask=mask), [mask])
    except InputError as error:
        assert "cannot be captured; refused at" in str(error)  # noqa: PT017
    else:
        with torch.no_grad():
            assert torch.equal(planted.output, encoder(x, src_key_padding_mask=mask))


@pytest.mark.filterwarnings("ignore")
def test_watch_sees_what_a_graph_holds_and_leaves_compiled_code_alone() -> None:
    step = Step(compiled=True)
    with torch.no_grad():
        for _ in range(2):
            step()
        own, _ = captured(step)
        with watch(shared=step.shared) as log:
            graph, _ = captured(step)
            graph.replay()
            step()
    names = [(node.kind, node.name) for node in list_nodes(raw_graph(graph)).nodes]
    assert names == [(node.kind, node.name) for node in list_nodes(raw_graph(own)).nodes]
    replayed = [e for e in log.log.events if e.launch]
    assert [(e.kind, e.stage, e.begin, e.end) for e in replayed if e.kind == "read"] == [("read", "paged", 0, 128)] * (
        LAST + 1
    )
    report = log.check()
    assert report.verdict == "incomplete"
    assert any("Whether kernel 'paged'" in line for line in report.missed)
    assert any("Whether Triton's kernel 'paged'" in line for line in report.missed)


@pytest.mark.slow
def test_the_audit_has_the_graphs_column() -> None:
    from warfence.backends import load
    from warfence.parity.audit.audit import audit_cell, cells
    from warfence.parity.rig import Rig
    from warfence.parity.small import small_model

    rig = Rig(load("torch")(device="cuda"), small_model())
    try:
        results = [audit_cell({"torch": rig}, cell, measure=False) for cell in cells(["decode"])]
    finally:
        rig.backend.close()
    assert [result.problems for result in results] == [[]] * len(results)
    assert all(result.graph["torch"] == result.boundary for result in results)


def child_of(graph: Any) -> Any:
    from cuda.bindings import driver as cu

    _, outer = cu.cuGraphCreate(0)
    status, _ = cu.cuGraphAddChildGraphNode(outer, [], 0, cu.CUgraph(graph.raw_cuda_graph()))
    assert int(status) == 0
    return outer


def test_a_raw_graph_with_a_child_and_a_host_node() -> None:
    from cuda.bindings import driver as cu

    step = Step()
    graph, output = captured(step)
    outer = child_of(graph)
    found = read_graph(outer, step.shared)
    assert [(op.name, len(op.reads)) for op in found.nodes] == [("child graph", 1)]
    assert read_graph(int(outer), step.shared).lines() == found.lines()
    proved(outer, step.shared, output)
    called = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
    params = cu.CUDA_HOST_NODE_PARAMS()
    params.fn = cu.CUhostFn(ctypes.cast(called, ctypes.c_void_p).value)
    params.userData = 0
    _, nodes, _ = cu.cuGraphGetNodes(outer, 1)
    status, _ = cu.cuGraphAddHostNode(outer, nodes, 1, params)
    assert int(status) == 0
    assert "a function of the host, which may read anything" in "\n".join(read_graph(outer, step.shared).lines())
    assert plant_graph(outer, step.shared).boundary.after.name == "host"


def test_what_writes_a_table_is_refused_with_its_node() -> None:
    step, other = Step(), torch.zeros(ROWS, N, dtype=torch.int32, device="cuda")
    graph, output = captured(lambda: step() + step.table.add_(1).remainder_(PAGES).sum())
    with pytest.raises(InputError, match="the graph writes 'page_table', which is shared"):
        plant_graph(graph, step.shared, output)
    graph, output = captured(lambda: (step.kv + 1, step.table.copy_(other)))
    with pytest.raises(InputError, match=r"node \d+ \(memcpy\) writes page_table\[0:128\], which is shared"):
        plant_graph(graph, step.shared)


def test_bad_input_is_told_in_a_sentence() -> None:
    step = Step()
    graph, output = captured(step)
    plain = torch.cuda.CUDAGraph()
    with torch.cuda.graph(plain):
        step.kv + 1
    for given, said in (
        (plain, "make it with torch.cuda.CUDAGraph"),
        (torch.cuda.CUDAGraph(keep_graph=True), "no nodes to look at"),
        ("graph", "got a graph of type str"),
    ):
        with pytest.raises(InputError, match=said):
            read_graph(given, step.shared)
    with pytest.raises(InputError, match="lies in pageable memory of the host"):
        read_graph(graph, [torch.ones(3)])
    with pytest.raises(InputError, match="nothing reads them, or the outputs given do not depend on them"):
        measure_graph(graph, {"other": torch.arange(9, device="cuda")}, output)
    with pytest.raises(InputError, match="no outputs are given"):
        measure_graph(graph, step.shared, [])
    with pytest.raises(InputError, match="give other ones"):
        measure_graph(graph, step.shared, output, wrong={"page_table": step.table.clone()})


@pytest.mark.slow
def test_a_thousand_plants_leave_nothing_behind() -> None:
    from cuda.bindings import driver as cu

    step = Step()
    graph, _ = captured(lambda: step.kv[step.table.long()] + 1)
    made, ended = [0, 0], [0, 0]
    with pytest.MonkeyPatch.context() as patch:
        for names, counts in (
            (("cuGraphClone", "cuGraphInstantiate"), made),
            (("cuGraphDestroy", "cuGraphExecDestroy"), ended),
        ):
            for i, name in enumerate(names):
                original = getattr(cu, name)

                def counting(*args: Any, original: Any = original, counts: list[int] = counts, i: int = i) -> Any:
                    counts[i] += 1
                    return original(*args)

                patch.setattr(cu, name, counting)
        plant_graph(graph, step.shared)
        torch.cuda.synchronize()
        free = torch.cuda.mem_get_info()[0]
        for _ in range(1000):
            plant_graph(graph, step.shared)
        torch.cuda.synchronize()
    assert made == ended == [1001, 1001]
    assert free - torch.cuda.mem_get_info()[0] <= 2**23
