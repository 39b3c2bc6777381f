"""What a watch is given, gives back and says, on the host and on host lanes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from warfence.core.errors import InputError
from warfence.host.lanes import HostEvent, WorkerLane
from warfence.races.check.events import HOST, Event
from warfence.races.check.log_file import read_log
from warfence_torch import stage
from warfence_torch.tools.watching import host_lanes, watch

LANES = ("forward", "schedule")


@pytest.fixture
def lanes() -> Iterator[tuple[WorkerLane, ...]]:
    made = tuple(WorkerLane(name) for name in LANES)
    yield made
    for lane in made:
        lane.close()


def short(event: Event) -> tuple[object, ...]:
    return event.kind, event.lane, event.stage, event.resource, event.begin, event.end


def test_cells_are_elements_of_the_named_tensor_whatever_view_touches_them() -> None:
    table = torch.zeros(4, 8, dtype=torch.int64)
    with watch(shared={"upper half": table[2:]}) as log:
        table[1:3].view(torch.int32).zero_()
        table[:2].zero_()
        table[3, 2:5].sum()
    assert [short(e) for e in log.log.events] == [
        ("write", HOST, "zero_", "upper half", 0, 8),
        ("read", HOST, "sum", "upper half", 10, 13),
    ]


def test_an_array_and_a_tensor_made_from_it_are_the_same_memory() -> None:
    array = np.zeros(8, np.float32)
    with watch(host=[array]) as log:
        torch.from_numpy(array[2:]).add_(1.0)
    assert {short(e)[0] for e in log.log.events} == {"read", "write"}
    assert {short(e)[3:] for e in log.log.events} == {("host 0", 2, 8)}
    assert any("'host 0' past torch" in sentence for sentence in log.log.unseen)


def test_an_operation_is_named_with_its_stage_and_its_place_in_the_program() -> None:
    table = torch.zeros(8)
    with watch(shared=[table]) as log, stage("page_table"):
        table.sum()
    (event,) = log.log.events
    assert event.stage == "page_table/sum"
    assert event.where.startswith("tests/torch_backend/watch/test_watch.py:")
    assert "in test_an_operation_is_named" in event.where


def test_work_stands_where_it_was_submitted(lanes: tuple[WorkerLane, ...]) -> None:
    forward, schedule = lanes
    table, gate = torch.zeros(8), HostEvent()
    generation = gate.arm(1)
    with watch(shared={"t": table}) as log:
        forward.wait_source(gate)
        forward.submit(lambda: table.sum())  # type: ignore[arg-type]
        schedule.submit(lambda: table.zero_())  # type: ignore[arg-type]
        schedule.synchronize()
        gate.complete(generation)
    kinds = [(e.kind, e.lane) for e in log.log.events]
    assert kinds == [
        ("wait", "forward"), ("read", "forward"), ("write", "schedule"), ("host_sync", HOST), ("record", HOST)
    ]  # fmt: skip


def test_a_record_inside_a_work_is_one_record_even_when_completed_again(lanes: tuple[WorkerLane, ...]) -> None:
    forward, _ = lanes
    marker = HostEvent()
    with watch(shared=[torch.zeros(1)], names={marker: "marker"}) as log:
        for launch in (1, 2):
            generation = marker.arm(launch)
            forward.submit(lambda generation=generation: marker.complete(generation))
            forward.submit(lambda generation=generation: marker.complete(generation), always=True)
    assert [(e.kind, e.event, e.generation) for e in log.log.events] == [
        ("record", "marker", 1),
        ("record", "marker", 2),
    ]


def test_touch_says_what_torch_does_not_see(lanes: tuple[WorkerLane, ...]) -> None:
    table = torch.zeros(8)
    array = table.numpy()
    with watch(shared={"t": table}) as log:

        def work() -> None:
            array[2:4] = 1.0
            log.touch("t", "write", 2, 4)

        lanes[0].submit(work)
        log.touch("t", "read")
    assert [short(e) for e in log.log.events] == [
        ("write", "forward", "touch", "t", 2, 4),
        ("read", HOST, "touch", "t", 0, 8),
    ]
    assert "race" in log.check().kinds()


def test_two_lanes_of_one_name_are_two() -> None:
    table, pair = torch.zeros(8), [WorkerLane("lane"), WorkerLane("lane")]
    with watch(shared={"t": table}) as log:
        for lane in pair:
            lane.submit(lambda: table.zero_())  # type: ignore[arg-type]
    for lane in pair:
        lane.close()
    assert set(log.check().lanes) == {HOST, "lane", "lane 2"}
    assert "race" in log.check().kinds()


def test_everything_is_as_before_also_behind_an_error(tmp_path: Path) -> None:
    def methods() -> list[object]:
        lane = [WorkerLane.submit, WorkerLane.synchronize, WorkerLane.settle]
        event = [HostEvent.arm, HostEvent.complete, HostEvent.reached, HostEvent.await_generation]
        cuda = [torch.cuda.Event.record, torch.cuda.Event.wait, torch.cuda.Stream.wait_stream, torch.cuda.synchronize]
        return [*lane, *event, *cuda, torch.cuda.CUDAGraph.replay, torch.cuda.CUDAGraph.capture_end]

    before, table = methods(), torch.zeros(8)
    with pytest.raises(ZeroDivisionError), watch(shared=[table], path=tmp_path / "log") as log:  # noqa: PT012
        assert all(now is not then for now, then in zip(methods(), before, strict=True))
        table.zero_()
        raise ZeroDivisionError
    assert methods() == before
    table.zero_()
    assert len(log.log.events) == 1
    assert read_log(tmp_path / "log") == type(log.log)(list(log.log.events), log.log.unseen, log.log.missed)


def test_a_lane_that_stands_for_good_is_named(lanes: tuple[WorkerLane, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_lanes, "STUCK_S", 0.0)
    gate = HostEvent()
    generation = gate.arm(1)
    with watch(shared=[torch.zeros(8)]) as log:
        lanes[0].wait_source(gate)
    gate.complete(generation)
    assert any("lane 'forward' stood" in sentence for sentence in log.log.missed)


def test_an_operation_of_another_library_is_named_where_it_could_touch_watched_memory() -> None:
    with torch.library._scoped_library("watch_test", "DEF") as library:
        library.define("opaque(Tensor x) -> Tensor")
        library.impl("opaque", torch.clone, "CPU")
        table = torch.zeros(8)
        with watch(shared=[table]) as log:
            torch.ops.watch_test.opaque(torch.zeros(8))
            assert not log._journal.events()
            torch.ops.watch_test.opaque(table)
    assert sum("watch_test::opaque" in sentence for sentence in log.log.missed) == 1


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: watch(), "nothing to watch; give tensors"),
        (lambda: watch(shared={"t": torch.zeros(0)}), "'t' has no memory"),
        (lambda: watch(shared=[torch.zeros(2, device="meta")]), "'shared 0' has no memory"),
        (lambda: watch(shared={"t": "table"}), "'t' is a str; what can be watched is a tensor or a numpy array"),
        (lambda: watch(shared={"t": torch.zeros(2)}, host={"t": np.zeros(2)}), "two watched tensors have one name"),
        (lambda: watch(shared={"t": (t := torch.zeros(8)), "u": t[4:]}), "'t' and 'u' overlap by 16 bytes"),
        (lambda: watch(shared={"t": torch.zeros(8)}).touch("u", "read"), "'u' is not watched; watched: t"),
        (lambda: watch(shared={"t": torch.zeros(8)}).touch("t", "read", 4, 9), "a 'read' or 'write' within [0, 8)"),
        (lambda: watch(shared={"t": torch.zeros(8)}).log, "the watch has not ended"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(make: Callable[[], object], says: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert says in str(caught.value)


def test_a_watch_is_used_once() -> None:
    with watch(shared=[torch.zeros(1)]) as log:
        pass
    with pytest.raises(InputError, match="this watch has ended"):
        log.__enter__()


def test_what_another_thread_waits_for_orders_nothing_of_the_host(lanes: tuple[WorkerLane, ...]) -> None:
    table = torch.zeros(8)
    with watch(shared=[table]) as log:
        lanes[0].submit(lambda: table.sum())  # type: ignore[arg-type]
        other = threading.Thread(target=lanes[0].synchronize)
        other.start()
        other.join()
        table.zero_()
    assert "race" in log.check().kinds()
