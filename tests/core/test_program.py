"""Programs and batches: what is checked when they are made, and where gates and markers stand."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage

LOAD, REPLAY, TAIL = Region.LOAD_BATCH, Region.REPLAY, Region.TAIL


def program(*stages: Stage) -> ForwardProgram:
    return ForwardProgram("p", ForwardMode.DECODE, BatchLayout(2, 1), stages, ())


ABC = program(
    Stage("a", LOAD, "x", gives=("v",)), Stage("b", REPLAY, "x", reads=("t",), takes=("v",)), Stage("c", REPLAY, "x"),
    Stage("d", TAIL, "x"),
)  # fmt: skip


def steps(p: ForwardProgram, region: Region, marker: str | None, gated: bool | frozenset[str]) -> list[str]:
    return [f"{s.kind} {s.name}" for s in p.steps(region, marker, gated)]


def test_without_gates_a_region_is_its_stages_and_the_marker() -> None:
    assert steps(ABC, REPLAY, "b", False) == ["stage b", "marker b", "stage c"]
    assert steps(ABC, LOAD, "b", False) == ["stage a"]


def test_a_gate_stands_behind_the_marker_and_at_the_head_of_the_next_region() -> None:
    assert steps(ABC, LOAD, "b", True) == ["gate start", "stage a"]
    assert steps(ABC, REPLAY, "b", True) == ["gate a", "stage b", "marker b", "gate b", "stage c"]
    assert steps(ABC, TAIL, "b", True) == ["gate c", "stage d", "gate d"]


@given(st.lists(st.sampled_from(list(Region)), min_size=1, max_size=8).map(sorted))
def test_every_gate_stands_exactly_once(regions: list[Region]) -> None:
    p = program(*(Stage(f"s{i}", r, "x") for i, r in enumerate(regions)))
    gates = [s.name for r in Region for s in p.steps(r, None, True) if s.kind == "gate"]
    assert gates == list(p.gate_positions())


def test_the_boundary_is_the_last_reader() -> None:
    assert ABC.read_boundary() is ABC.stages[1]
    assert program(Stage("a", LOAD, "x")).read_boundary() is None
    assert ABC.before("b") == "a"
    assert ABC.before("a") == "start"


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([Stage("a", LOAD, "x"), Stage("a", LOAD, "x")], r"unique and not 'start'; seen twice: \['a'\]"),
        ([Stage("start", LOAD, "x")], "unique and not 'start'"),
        ([Stage("a", REPLAY, "x"), Stage("b", LOAD, "x")], "ordered load_batch, replay, tail"),
        ([Stage("a", LOAD, "x", takes=("ghost",))], r"stage 'a' takes \['ghost'\], which nothing before it gives"),
    ],
)
def test_a_wrong_program_is_refused(stages: list[Stage], message: str) -> None:
    with pytest.raises(InputError, match=message):
        program(*stages)


@pytest.mark.parametrize("breaks", [("a",), ("c",), ("d",), ("start",), ("nowhere",), ("b", "c")], ids=str)
def test_a_break_stands_behind_a_replay_stage_but_the_last(breaks: tuple[str, ...]) -> None:
    """`a` is loaded, `d` is the tail's, and behind `c` the replay is over anyway."""
    strange = [b for b in breaks if b != "b"]
    message = re.escape(f"program 'p': breaks after {strange}; a break stands after a replay stage but the last: b")
    with pytest.raises(InputError, match=f"{message}$"):
        replace(ABC, breaks=breaks)
    assert replace(ABC, breaks=("b",)).breaks == ("b",)


def test_where_there_is_no_room_for_a_break_that_is_told() -> None:
    with pytest.raises(InputError, match="after a replay stage but the last: there is none"):
        replace(program(Stage("a", LOAD, "x"), Stage("b", REPLAY, "x")), breaks=("b",))


def test_breaks_change_neither_steps_nor_gates() -> None:
    broken = replace(ABC, breaks=("b",))
    for region in Region:
        assert broken.steps(region, "b", True) == ABC.steps(region, "b", True)
    assert broken.gate_positions() == ABC.gate_positions()


def test_an_unknown_stage_gets_the_nearest_names() -> None:
    p = program(Stage("swa_translate", LOAD, "x"), Stage("page_table", LOAD, "x"))
    with pytest.raises(InputError, match="no stage 'swa_translat'; nearest: swa_translate"):
        p.index("swa_translat")


@pytest.mark.parametrize("stage", ["start", "a", "d"])
def test_a_marker_stands_in_the_replay(stage: str) -> None:
    with pytest.raises(InputError, match=rf"a marker stands after a replay stage \(b, c\), not '{stage}'"):
        ABC.steps(REPLAY, stage, False)


def test_gates_only_where_they_are_wanted() -> None:
    wanted = frozenset({"a", "d"})
    assert ABC.gate_positions(wanted) == ("a", "d")
    assert steps(ABC, LOAD, None, wanted) == ["stage a"]
    assert steps(ABC, REPLAY, None, wanted) == ["gate a", "stage b", "stage c"]
    assert steps(ABC, TAIL, None, wanted) == ["stage d", "gate d"]


def test_pack_round_trip_and_padding() -> None:
    layout = BatchLayout(3, 4)
    batch = pack(layout, [BatchRow(2, 7, (5, 6), (11, 12), False, 0.5, 0.25, (0.75,))])
    assert batch.view("input_ids").tolist() == [[5, 6, 0, 0], [0] * 4, [0] * 4]
    assert batch.view("out_cache_loc")[0].tolist() == [11, 12, 0, 0]
    assert batch.view("extend_lens").tolist() == [2, 1, 1]
    assert batch.view("req_pool_indices").tolist() == [2, 0, 0], "padding reads the reserved row 0"
    assert batch.view("temperature").dtype == np.float32
    assert [float(batch.view(n).flat[0]) for n in ("temperature", "top_p", "uniform")] == [0.5, 0.25, 0.75]
    assert batch.words.size == layout.words


def test_a_packed_batch_is_never_written_again() -> None:
    """Law 12: a lane may still read the words; numpy itself refuses."""
    batch = pack(BatchLayout(1, 1), [])
    with pytest.raises(ValueError, match="read-only"):
        batch.words[0] = 1
