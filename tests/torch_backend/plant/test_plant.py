"""plant() on the CPU: where the reads end, what the report says, what is refused. Holding is in test_plant_held.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

import warfence_torch
from warfence.core.errors import FenceError, InputError, StageError
from warfence.core.modes import WarReadDonePolicy
from warfence.host.lanes import WorkerLane
from warfence_torch import plant, stage
from warfence_torch.tools.accesses import Declared


@torch.library.custom_op("warfence_test::rows", mutates_args=())
def rows_of(table: Tensor, idx: Tensor) -> Tensor:
    return table[idx]


@pytest.fixture
def table() -> Tensor:
    return torch.arange(24.0).reshape(4, 6)


@pytest.fixture
def lane() -> Iterator[WorkerLane]:
    lane = WorkerLane("forward")
    yield lane
    lane.close()


IDX = torch.tensor([0, 2])
X = torch.ones(2, 6)


def last_read(planted: object) -> str:
    return planted.boundary.after.name


def test_the_boundary_is_the_last_read_however_it_is_disguised(table: Tensor) -> None:
    view = table.view(-1)[6:].view(3, 6)

    def fn(x: Tensor) -> Tensor:
        with stage("page_table"):
            rows = table[IDX]
        with stage("layer"):
            y = rows + x
            z = torch.add(y, view[0], out=torch.empty(2, 6))
        return torch.relu(z)

    planted = plant(fn, {"table": table}, args=(X,))
    assert (last_read(planted), planted.boundary.stage, planted.boundary.operations) == ("aten.add.out", "layer", 6)
    assert planted.boundary.policy is WarReadDonePolicy.IN_GRAPH
    first, second, decided, checked, limits = planted.report()
    here = "test_plant.py:"
    assert first.startswith("operation 0 (aten.index.Tensor) of stage 'page_table' at ")
    assert first.endswith("reads table[0:24]")
    assert second.endswith("reads table[6:12]")
    assert here in first
    assert here in second
    assert decided == "the reads end after operation 4 of 6: the marker stands there"
    assert checked == "checked: overwriting the tables behind the marker changes no result"
    assert limits.startswith("not seen: ")


def test_a_view_alone_is_no_read_and_disjoint_memory_is_not_shared(table: Tensor) -> None:
    planted = plant(lambda: (table[:2].sum(), table[2:].t().view_as(table[2:].t()).shape[0], table[3] + 1), [table[:2]])
    assert [op.name for op in planted.boundary.reads] == ["aten.sum.default"]


def test_a_replay_renews_the_output_and_its_ticket_is_of_that_launch(table: Tensor, lane: WorkerLane) -> None:
    planted = plant(lambda x: {"rows": table[IDX] + x}, [table], args=(X,))
    with pytest.raises(FenceError, match="ticket of launch 1 asked for"):
        planted.ticket(1)
    output = planted.output["rows"]
    for launch in (1, 2):
        table.fill_(launch)
        planted.replay(lane, launch)
        ticket = planted.ticket(launch)
        ticket.check()
        lane.synchronize()
        assert ticket.source.done()
        assert output.tolist() == [[launch + 1.0] * 6] * 2
        assert planted.output["rows"] is output
    with pytest.raises(FenceError, match="ticket of launch 1 asked for"):
        planted.ticket(1)


def test_an_operation_of_another_library_moves_the_marker_behind_it(table: Tensor) -> None:
    def fn(x: Tensor) -> Tensor:
        return rows_of(x, IDX - 1) + table[0] if unread_first else rows_of(x, IDX - 1) * rows_of(table[:2], IDX - 1)

    unread_first = False
    planted = plant(fn, {"table": table}, args=(X,))
    assert last_read(planted) == "warfence_test.rows.default"
    assert [op.position for op in planted.boundary.unseen] == [1, 4]
    assert "operation 4 (warfence_test.rows.default)" in planted.report()[0] + planted.report()[1]
    assert "declare what it reads and writes); the marker stands behind it" in planted.report()[1]

    declared = {"warfence_test::rows": Declared(reads=("table", "idx")), "other::op": Declared()}
    planted = plant(fn, {"table": table}, args=(X,), declared=declared)
    assert [(op.position, str(op.reads[0])) for op in planted.boundary.reads] == [(4, "table[0:12]")]
    assert not planted.boundary.unseen
    assert "declared by the user: other::op reads (), writes () (never came up)" in planted.report()


def test_a_pointer_that_is_given_away_moves_the_marker_to_the_end(table: Tensor, lane: WorkerLane) -> None:
    def fn() -> Tensor:
        table.data_ptr()
        X.data_ptr()  # not shared: nobody minds
        return X + 1

    planted = plant(fn, {"table": table})
    assert planted.boundary.after.name == "the end of the function"
    assert "data_ptr() of table[0:24] was taken at" in planted.report()[0]
    planted.replay(lane, 1)
    lane.synchronize()
    assert planted.ticket(1).source.done()


def test_nothing_shared_is_read_so_the_ticket_is_out_before_the_replay(table: Tensor, lane: WorkerLane) -> None:
    planted = plant(lambda: X + 1, [table])
    assert planted.boundary.policy is WarReadDonePolicy.PRE_REPLAY
    assert planted.report()[0].startswith("no shared array is read")
    planted.replay(lane, 1)
    planted.ticket(1).source.synchronize()


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (
            lambda t: t[1].add_(1),
            r"operation 1 \(aten.add_.Tensor\) at .*test_plant.py:\d+ in <lambda> writes table\[6:12\]",
        ),
        (lambda t: torch.add(X, 1, out=t[:2]), r"aten.add.out\) at .* writes table\[0:12\]"),
        (lambda t: (t + 1, t[2:]), r"result 1 of the function is a view of table\[12:24\]"),
        (
            lambda t: t[0, 0].item(),
            r"_local_scalar_dense.default\) at .*test_plant.py:\d+ in <lambda> cannot be captured",
        ),
        (lambda t: X.nonzero(), "nonzero.default.* cannot be captured: the shape of its result depends on values"),
        (lambda t: X.masked_select(X > 0), "masked_select.default.* cannot be captured"),
        (lambda t: X[X > 0], "index.Tensor.* cannot be captured: the host counts the cells of a mask"),
        (lambda t: X.clone().__setitem__(X > 0, torch.ones(12)), "index_put_.default.* cannot be captured"),
        (lambda t: torch.unique(X), "_unique2.default.* cannot be captured"),
        (lambda t: X.tolist(), r"tolist\(\) at .*test_plant.py:\d+ in <lambda> cannot be captured"),
        (lambda t: X.numpy(), r"numpy\(\) at .* cannot be captured"),
    ],
)
def test_refused_with_operation_and_line(table: Tensor, act: Callable[[Tensor], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        plant(act, {"table": table}, args=(table,))


def test_a_mask_that_only_fills_is_allowed(table: Tensor) -> None:
    planted = plant(lambda: X.clone().__setitem__(X > 0, 0.0), [table])
    assert planted.boundary.operations > 0


def test_composites_that_inference_mode_does_not_take_apart_are_refused_too(table: Tensor) -> None:
    with torch.inference_mode():
        x = torch.ones(1)
    with pytest.raises(InputError, match=r"aten.is_nonzero.default\) at .* cannot be captured: the host reads a value"):
        plant(lambda x: x + 1 if x else x, [table], args=(x,))


@pytest.mark.parametrize(
    ("shared", "said"),
    [
        (lambda t: [], "no shared tensor is given"),
        (lambda t: {"a": t, "b": t[3:]}, "shared tensors 'a' and 'b' overlap in memory by 24 bytes"),
        (lambda t: [3], r"shared 'shared\[0\]' is of type int"),
        (lambda t: [t.to_sparse()], r"shared 'shared\[0\]' is a tensor of layout torch.sparse_coo"),
        (lambda t: [t[4:]], "is empty"),
    ],
)
def test_shared_tensors_are_checked(table: Tensor, shared: Callable[[Tensor], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        plant(lambda: table + 1, shared(table))


def test_only_cuda_has_streams_and_devices_have_names(table: Tensor) -> None:
    with pytest.raises(InputError, match="a stream or a pool, which only CUDA has"):
        plant(lambda: table + 1, [table], pool=object())
    with pytest.raises(InputError, match="got device 'gpu'; choose one of: cpu, cuda"):
        plant(lambda: table + 1, [table], device="gpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_cuda_is_refused_where_there_is_none(table: Tensor) -> None:
    with pytest.raises(InputError, match=r"torch.cuda.is_available\(\) is False; use device='cpu'"):
        plant(lambda: table + 1, [table], device="cuda")


@pytest.mark.parametrize(
    ("passes", "said"),
    [
        ((["add"], ["mul"]), r"the first pass had operation 0 \(aten.add.Tensor\).*, this pass operation 0 \(aten.mul"),
        ((["add"], ["add", "mul"]), r"operation 1 \(aten.mul.Tensor\) at .* came after the end of the first pass"),
        ((["add", "mul"], ["add"]), r"this pass ends before operation 1 \(aten.mul.Tensor\) at"),
    ],
)
def test_two_passes_that_differ_are_refused(table: Tensor, passes: tuple[list[str], ...], said: str) -> None:
    rounds = iter(passes)
    with pytest.raises(InputError, match=f"does not do the same twice.*{said}"):
        plant(lambda: [getattr(torch, name)(table, 2) for name in next(rounds)], [table])


def test_the_same_operation_on_another_slice_is_a_difference(table: Tensor) -> None:
    rows = iter((0, 1))
    with pytest.raises(InputError, match=r"reads \[0:24\].*this pass .*reads \[24:48\]"):
        plant(lambda: table[next(rows)] + 1, [table])


def test_a_replay_that_departs_from_the_trace_fails_its_launch_and_hangs_nobody(
    table: Tensor, lane: WorkerLane
) -> None:
    rounds = iter((1, 1, 1, 2))
    planted = plant(lambda: [table + 1 for _ in range(next(rounds))], [table])
    planted.replay(lane, 1)
    planted.ticket(1).source.synchronize()
    with pytest.raises(StageError, match=r"launch 1, stage 'behind operation 1 .*came after the end of the first pass"):
        lane.synchronize()


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, warfence_torch; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'plan'"):
        warfence_torch.plan  # noqa: B018
