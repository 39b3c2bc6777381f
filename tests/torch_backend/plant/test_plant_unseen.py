"""plant() on the CPU where a trace alone would be wrong: reads past the dispatcher, compiled code, what a thread holds."""

from __future__ import annotations

import contextvars
import ctypes
import dataclasses
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch._inductor
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from warfence.core.errors import InputError
from warfence.host.lanes import WorkerLane
from warfence_torch import plant

KV = torch.arange(64.0).reshape(8, 8)
X = torch.ones(2, 6)
HIDDEN = "something reads that the trace does not see"
CHECKED = "checked: overwriting the tables behind the marker changes no result"


@pytest.fixture
def table() -> Tensor:
    return torch.arange(4)


@pytest.fixture
def lane() -> Iterator[WorkerLane]:
    lane = WorkerLane("forward")
    yield lane
    lane.close()


def is_at_the_end(planted: object) -> bool:
    return planted.boundary.after.name == "the end of the function" and HIDDEN in "\n".join(planted.report())


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_a_compiled_artifact_that_no_dispatcher_sees_is_found_by_overwriting(table: Tensor) -> None:
    with torch.no_grad():
        artifact = torch._inductor.standalone_compile(make_fx(lambda t: (KV[t] + 1).sin())(table), [table])
        planted = plant(lambda: artifact(table), [table])
    assert is_at_the_end(planted)
    assert "overwriting the tables before it begins changes a result" in "\n".join(planted.report())
    assert table.tolist() == [0, 1, 2, 3]


def test_a_read_by_another_thread_of_the_function_is_found(table: Tensor) -> None:
    with ThreadPoolExecutor(1) as pool:
        planted = plant(lambda: KV[table] + pool.submit(lambda: KV[table] * 2).result(), {"table": table})
    assert is_at_the_end(planted)
    assert [str(op.reads[0]) for op in planted.boundary.reads] == ["table[0:4]"]


def test_a_read_by_an_address_from_before_is_found(table: Tensor, lane: WorkerLane) -> None:
    address = table.data_ptr()

    def fn() -> Tensor:
        first = KV[table]
        return first + ctypes.c_int64.from_address(address + 8).value

    planted = plant(fn, [table])
    assert is_at_the_end(planted)
    planted.replay(lane, 1)
    lane.synchronize()
    planted.ticket(1).source.synchronize()
    assert torch.equal(planted.output, KV[table] + 1)


def test_a_read_that_shows_in_state_alone_is_found(table: Tensor) -> None:
    state, address = torch.zeros(1), table.data_ptr()

    def fn() -> Tensor:
        state.add_(ctypes.c_int64.from_address(address).value)
        return X + 1

    assert is_at_the_end(plant(fn, [table]))
    assert table.tolist() == [0, 1, 2, 3]


def test_where_nothing_can_be_compared_that_is_said() -> None:
    same = torch.full((4,), 2)
    assert "all cells of 'table' that hold an index hold the same one" in "\n".join(
        plant(lambda: KV[same], {"table": same}).report()
    )
    table, runs = torch.arange(4), iter(range(9))
    shaky = plant(lambda: KV[table] + torch.full((1,), 7.0).fill_(next(runs)), [table])
    assert "not checked by overwriting: two clean runs give different results" in shaky.report()


def compiled() -> tuple[Callable[[Tensor], Tensor], list[int]]:
    hits = [0]

    def backend(module: Callable[..., object], example: object) -> Callable[..., object]:
        def run(*args: object) -> object:
            hits[0] += 1
            return module(*args)

        return run

    return torch.compile(lambda t: KV[t].sin(), backend=backend), hits


def test_compiled_code_is_compiled_as_before_afterwards(table: Tensor, lane: WorkerLane) -> None:
    fn, hits = compiled()
    fn(table), fn(table)
    assert hits == [2]
    planted = plant(lambda: fn(table), [table])
    planted.replay(lane, 1)
    lane.synchronize()
    assert planted.boundary.after.name == "aten.index.Tensor"
    before = hits[0]
    fn(table), fn(table)
    assert hits[0] == before + 2


def test_a_function_that_must_be_one_graph_can_be_planted(table: Tensor) -> None:
    fn = torch.compile(lambda t: KV[t].sin(), backend="eager", fullgraph=True)
    assert CHECKED in plant(lambda: fn(table), [table]).report()
    assert torch.equal(fn(table), KV[table].sin())


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_the_fast_path_of_a_transformer_stays() -> None:
    torch.manual_seed(0)
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 1).eval()
    mask, x = torch.tensor([[False, True]]), torch.randn(1, 2, 8)
    with torch.no_grad():
        right = encoder(x, src_key_padding_mask=mask)
    assert right[0, 1].tolist() == [0.0] * 8
    assert torch.equal(plant(lambda: encoder(x, src_key_padding_mask=mask), [mask]).output, right)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize(
    "fn",
    [
        lambda t: torch.cond(t.sum() > 0, lambda: KV[t], lambda: KV[t] * 2, ()),
        lambda t: torch.nested.nested_tensor([KV[:3], KV[:5]]).to_padded_tensor(0.0) + t[0],
        lambda t: torch.while_loop(lambda i: i < t.sum(), lambda i: (i + 1,), (torch.tensor(0),))[0],
    ],
)
def test_operations_of_higher_order_and_nested_tensors(
    table: Tensor, lane: WorkerLane, fn: Callable[[Tensor], Tensor]
) -> None:
    right = fn(table)
    planted = plant(lambda: fn(table), [table])
    assert torch.equal(planted.output, right)
    table.add_(1)
    planted.replay(lane, 1)
    lane.synchronize()
    assert torch.equal(planted.output, fn(table))


@dataclasses.dataclass
class Result:
    rows: Tensor


def test_a_result_in_which_tensors_hide_is_refused(table: Tensor) -> None:
    with pytest.raises(InputError, match="result 0 of the function is of type Result, in which tensors are not found"):
        plant(lambda: Result(KV[table]), [table])


def test_context_variables_go_along_and_what_a_thread_holds_is_refused(table: Tensor, lane: WorkerLane) -> None:
    step, local = contextvars.ContextVar("step", default=0.0), threading.local()
    step.set(3.0)
    planted = plant(lambda: KV[table] + step.get(), [table])
    step.set(4.0)
    planted.replay(lane, 1)
    lane.synchronize()
    assert torch.equal(planted.output, KV[table] + 3)
    local.step = 3.0
    with pytest.raises(InputError, match="does something else in another thread, and a lane is one"):
        plant(lambda: KV[table] + getattr(local, "step", 0.0), [table])
    with pytest.raises(InputError, match=r"in another thread, and a lane is one .*has no attribute 'step'"):
        plant(lambda: KV[table] + local.step, [table])


def test_other_threads_take_values_while_a_function_is_traced(table: Tensor) -> None:
    with ThreadPoolExecutor(1) as pool:
        planted = plant(lambda: KV[table] + pool.submit(X.tolist).result()[0][0], [table])
    assert CHECKED in planted.report()
    assert Tensor.tolist is torch._C.TensorBase.tolist


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda t: plant(None, [t]), "got a NoneType to capture; give a function"),
        (lambda t: plant(lambda: KV[t], t), r"shared is a tensor; give the tensors in a list, or by name"),
        (lambda t: plant(lambda: KV[t], 5), "shared is of type int"),
    ],
)
def test_bad_input_is_told_in_a_sentence(table: Tensor, call: Callable[[Tensor], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        call(table)
