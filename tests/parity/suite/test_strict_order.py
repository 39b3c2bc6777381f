"""The strict backend runs nothing early: writes land as early as the waits permit, the forward as late as it may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.strict_log import writes_before_earlier_reads
from warfence.core.errors import FenceError, StageError
from warfence.races.check.events import Event
from warfence.races.check.findings import check
from warfence.races.check.log_file import Log, read_log, write_log

Make = Callable[..., Any]


def values(outputs: Any) -> tuple[int, int]:
    """What the early and the late read saw."""
    result = outputs.result()
    return int(result["early"][0]), int(result["late"][0])


def test_nothing_runs_when_it_is_enqueued(toy: Any) -> None:
    toy.write(5)
    toy.launch(1)
    assert toy.backend.log == []


def test_without_a_wait_a_later_write_lands_before_the_first_read(toy: Any) -> None:
    toy.write(1)
    toy.lane.wait_lane(toy.schedule)
    outputs = toy.launch(1)
    toy.write(2)
    assert values(outputs) == (2, 2)
    (write, early), (_, late) = writes_before_earlier_reads(toy.backend.log)
    assert (write.launch, early.stage, late.stage) == (1, "take", "read")


def test_a_ticket_from_before_the_replay_lets_the_write_in_right_there(toy: Any) -> None:
    toy.forward.load_batch(toy.batch(), 1)
    ticket = toy.lane.record(1)
    toy.forward.replay(1)
    outputs = toy.forward.tail(1)
    toy.schedule.wait(ticket)
    toy.write(2)
    assert values(outputs) == (0, 2), "between the two reads"
    assert [read.stage for _, read in writes_before_earlier_reads(toy.backend.log)] == ["read"]


def test_the_marker_lets_the_write_in_before_the_next_stage(toy: Any) -> None:
    outputs = toy.launch(1)
    toy.schedule.wait(toy.forward.marker.ticket(1))
    toy.write(2)
    assert values(outputs) == (0, 0)
    order = [h for h in toy.happened() if not h.startswith("gate")]
    assert order == [
        "stage take", "stage read", "record marker after read #1", "await marker after read #1", "write t",
        "stage think", "stage keep", "record end of launch 1",
    ]  # fmt: skip
    assert writes_before_earlier_reads(toy.backend.log) == []


def test_the_coarse_wait_is_for_the_whole_forward(toy: Any) -> None:
    outputs = toy.launch(1)
    toy.schedule.wait_lane(toy.lane)
    toy.write(2)
    assert values(outputs) == (0, 0)
    assert "write t" not in toy.happened(), "the result was here before the lane was idle"
    toy.schedule.synchronize()
    assert toy.happened()[-3:] == ["record forward for schedule #2", "await forward for schedule #2", "write t"]


def test_a_result_is_all_that_is_run(toy: Any) -> None:
    first, second = toy.launch(1), toy.launch(2)
    first.result()
    assert {e.launch for e in toy.backend.log} == {1}
    assert first.result() is first.result()
    second.result()


def test_the_other_adversary_runs_the_forward_first(make_toy: Make) -> None:
    for waits, seen in ((True, (7, 7)), (False, (0, 0))):
        toy = make_toy(backend={"adversary": "raw"})
        toy.write(7)
        if waits:
            toy.lane.wait_lane(toy.schedule)
        assert values(toy.launch(1)) == seen, "without the wait the plan's write comes too late"


def test_a_wait_binds_to_the_record_at_the_call(toy: Any) -> None:
    first = toy.launch(1)
    toy.schedule.wait(toy.forward.marker.ticket(1))
    second = toy.launch(2)
    toy.write(3)
    assert values(first) == (0, 0)
    assert values(second) == (3, 3), "the wait was for launch 1 alone"


def test_settle_is_exact(toy: Any) -> None:
    toy.forward.gates.close("take")
    outputs = toy.launch(1)
    toy.schedule.wait(toy.forward.marker.ticket(1))
    toy.write(2)
    assert toy.schedule.settle(0.0) is False
    assert toy.lane.settle(0.0) is False
    toy.forward.gates.open("take")
    assert toy.schedule.settle(0.0) is True
    assert "stage think" not in toy.happened(), "it drove no further than it had to"
    assert values(outputs) == (0, 0)


@pytest.mark.parametrize(("position", "landed"), [("start", False), ("take", False), ("read", True), ("keep", True)])
def test_held_at_a_gate_the_write_lands_from_the_boundary_on(toy: Any, position: str, landed: bool) -> None:
    toy.forward.gates.close(position)
    outputs = toy.launch(1)
    toy.schedule.wait(toy.forward.marker.ticket(1))
    toy.write(2)
    toy.forward.gates.await_reached(position)
    assert toy.schedule.settle(0.0) is landed
    toy.forward.gates.open_all()
    assert values(outputs) == (0, 0)


def test_a_table_snapshot_waits_for_its_own_writes_only(toy: Any) -> None:
    toy.write(4, "u")
    toy.launch(1)
    toy.schedule.wait(toy.forward.marker.ticket(1))
    toy.write(5)
    assert toy.tables.snapshot_to_host("u").tolist() == [[4, 0], [0, 0]]
    assert toy.happened() == ["write u"]
    snapshot = toy.tables.snapshot_to_host("t")
    toy.write(6)
    assert snapshot[0, 0] == 5
    assert toy.backend.state_to_host("s").tolist() == [0.0]


def test_a_ticket_says_when_it_is_done(toy: Any) -> None:
    toy.launch(1)
    source = toy.forward.marker.ticket(1).source
    assert not source.done(), "asking runs nothing"
    source.synchronize()
    assert source.done()
    assert toy.happened()[-1] == "record marker after read #1"


def test_released_memory_is_poisoned(make_toy: Make) -> None:
    kept: list[np.ndarray] = []

    def early(env: Any, attrs: Any) -> dict[str, np.ndarray]:
        kept.append(np.array([3], np.int32))
        return {"early": kept[0]}

    def think(env: Any, attrs: Any) -> dict[str, np.ndarray]:
        kept.append(np.array([0.5], np.float32))
        return {"thought": kept[1]}

    toy = make_toy({"early": early, "think": think})
    outputs = toy.launch(1)
    result = outputs.result()
    assert (result["early"][0], result["thought"][0]) == (3, 0.5), "the host has copies"
    assert kept[0][0] == np.iinfo(np.int32).min
    assert np.isnan(kept[1][0])
    table = toy.tables.arrays["t"]
    toy.backend.close()
    assert table[0, 0] == np.iinfo(np.int32).min


def test_a_failing_stage_hangs_nobody_and_spares_what_was_done(make_toy: Make) -> None:
    def late(env: Any, attrs: Any) -> dict[str, np.ndarray]:
        if env["t"][0, 0] == 9:
            raise ValueError("nine")
        return {"late": env["t"][0, :1].copy()}

    toy = make_toy({"late": late})
    first = toy.launch(1)
    toy.lane.synchronize()
    toy.write(9)
    toy.lane.wait_lane(toy.schedule)
    toy.forward.gates.close("think")
    second = toy.launch(2)
    toy.schedule.wait(toy.forward.marker.ticket(2))
    toy.write(1)
    toy.schedule.synchronize()  # its wait was let go, although the stage before the marker failed
    toy.forward.gates.close("think")  # the failure opened every gate
    for call in (second.result, toy.lane.synchronize, lambda: toy.forward.gates.await_reached("think")):
        with pytest.raises(StageError, match=r"launch 2, stage 'read': ValueError: nine") as caught:
            call()
        assert (caught.value.launch, caught.value.stage) == (2, "read")
    with pytest.raises(StageError):
        toy.launch(3)
    assert values(first) == (0, 0)


def test_an_output_that_no_stage_gave_is_a_failure_of_that_launch(make_toy: Make) -> None:
    toy = make_toy()
    forward = toy.backend.compile(replace(toy.program, outputs=("nothing",)))
    forward.load_batch(toy.batch(), 1)
    forward.replay(1)
    with pytest.raises(StageError, match="launch 1, stage 'outputs': KeyError: 'nothing'"):
        forward.tail(1).result()


def test_law_one_is_about_tables_and_launches() -> None:
    read = Event("read", "forward", 3, "page_table", "t", 0, 4)
    write = Event("write", "schedule", 3, "write t", "t", 0, 1)
    assert writes_before_earlier_reads([write, read]) == [(write, read)]
    assert writes_before_earlier_reads([write._replace(launch=2), read]) == []
    assert writes_before_earlier_reads([write._replace(resource="u"), read]) == []


@pytest.mark.parametrize("adversary", ["war", "raw"])
@pytest.mark.parametrize("ticket", ["event", "value"])
@pytest.mark.parametrize(("waits", "found"), [(True, set()), (False, {"race"})])
def test_the_checker_judges_the_log_of_what_happened(
    make_toy: Make, tmp_path: Path, adversary: str, ticket: str, waits: bool, found: set[str]
) -> None:
    toy = make_toy(backend={"adversary": adversary, "ticket": ticket})
    for launch in (1, 2):
        toy.lane.wait_lane(toy.schedule)
        toy.launch(launch)
        if waits:
            toy.schedule.wait(toy.forward.marker.ticket(launch))
        toy.write(launch)
    for lane in (toy.lane, toy.schedule):
        lane.synchronize()
    assert check(Log(toy.backend.log)).kinds() == found, "whatever the adversary chose: it is about what was ordered"
    write_log(tmp_path / "log", toy.backend.log)
    assert read_log(tmp_path / "log").events == toy.backend.log


def test_what_would_block_for_ever_is_refused_with_where_everybody_stands(toy: Any) -> None:
    toy.forward.gates.close("take")
    outputs = toy.launch(1)
    toy.schedule.wait(toy.forward.marker.ticket(1))
    toy.write(2)
    stands = (
        "would block for ever: lane 'schedule' stands at a wait for the ticket of launch 1; lane 'forward' stands at "
        "the closed gate at 'take' of 'toy'"
    )
    for call, who in (
        (outputs.result, r"result\(\) of launch 1"),
        (toy.schedule.synchronize, r"synchronize\(\) on lane 'schedule'"),
        (toy.forward.marker.ticket(1).source.synchronize, r"synchronize\(\) on the ticket of launch 1"),
        (lambda: toy.tables.snapshot_to_host("t"), r"snapshot_to_host\('t'\)"),
        (lambda: toy.backend.state_to_host("s"), r"synchronize\(\) on lane 'forward'"),
    ):
        with pytest.raises(FenceError, match=f"{who} {stands}"):
            call()
    toy.forward.gates.open_all()
    assert values(outputs) == (0, 0)
