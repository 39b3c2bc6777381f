from __future__ import annotations

from dataclasses import replace

import pytest

from warfence.core.attention import attention_names, make_attention
from warfence.core.batch import BatchLayout
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import START, ForwardProgram, Stage
from warfence.serve.model.program import build
from warfence_jax.segments import Segment, cut

from .conftest import model


def program(attention: str = "captured") -> ForwardProgram:
    config = model((False, True, False, True))
    return build(config, make_attention(attention, (1, 3)), ForwardMode.DECODE, BatchLayout(2, 1), sampled=False)


def names(segments: tuple[Segment, ...]) -> list[list[str]]:
    return [[s.name for s in segment.stages] for segment in segments]


def test_the_chain_is_cut_after_the_marker() -> None:
    segments = cut(program(), "swa_translate", gated=False, split=False)
    rest = ["embed", "layer.0", "layer.1", "layer.2", "layer.3", "logits", "sample"]
    assert names(segments) == [["stage_inputs"], ["page_table", "swa_translate"], rest, ["relay"]]
    assert [s.ends_at_marker for s in segments] == [False, True, False, False]
    assert segments[1].label == "page_table..swa_translate"


def test_without_a_marker_the_replay_is_one_executable() -> None:
    segments = cut(program("live"), None, gated=False, split=False)
    assert [s.region for s in segments] == [Region.LOAD_BATCH, Region.REPLAY, Region.TAIL]
    assert not any(s.ends_at_marker for s in segments)


@pytest.mark.parametrize("attention", attention_names())
@pytest.mark.parametrize("split", [False, True])
def test_only_segments_up_to_the_boundary_take_tables_and_every_value_is_given_before_it_is_taken(
    attention: str, split: bool
) -> None:
    made = program(attention)
    boundary = make_attention(attention, (1, 3)).last_reader(ForwardMode.DECODE)
    segments = cut(made, boundary, gated=True, split=split)
    assert [s for segment in segments for s in segment.stages] == list(made.stages)
    known = set(made.layout.fields)
    for segment in segments:
        assert known.issuperset(segment.takes)
        known |= set(segment.gives)
    assert segments[-1].outputs == made.outputs
    cuts = [i for i, s in enumerate(segments) if s.ends_at_marker]
    assert len(cuts) == (boundary is not None)
    for i in cuts:
        assert not any(s.tables for s in segments[i + 1 :])
    if split:
        assert all(all(stage.reads for stage in s.stages) == s.on_tables for s in segments)


def test_values_that_nobody_needs_later_are_not_passed_on() -> None:
    before, after, last = cut(program(), "swa_translate", gated=False, split=False)[1:]
    assert set(before.gives) == {"page_table", "swa_table", "swa_out_cache_loc"}
    assert after.gives == ("next_tokens", "margin")
    assert after.state == ("kv.0", "kv.1", "kv.2", "kv.3")
    assert last.takes == ("next_tokens", "req_pool_indices", "margin")
    assert (last.gives, last.outputs) == ((), ("next_tokens", "margin"))


def test_a_gate_belongs_to_the_executable_behind_the_cut() -> None:
    segments = cut(program(), "swa_translate", gated=True, split=False)
    assert [segment.steps[0].name for segment in segments] == [START, "stage_inputs", "swa_translate", "sample"]
    assert all(segment.steps[0].kind == "gate" for segment in segments)
    gates = [step.name for segment in segments for step in segment.steps if step.kind == "gate"]
    assert tuple(gates) == program().gate_positions()
    assert segments[-1].steps[-1].name == "relay"  # the last gate has nothing behind it


def broken(*breaks: str, attention: str = "captured") -> ForwardProgram:
    return replace(program(attention), breaks=breaks)


def test_the_chain_is_cut_where_the_program_breaks() -> None:
    segments = cut(broken("embed", "layer.1"), None, gated=False, split=False)
    replay = [n for n, s in zip(names(segments), segments, strict=True) if s.region is Region.REPLAY]
    assert replay == [
        ["page_table", "swa_translate", "embed"], ["layer.0", "layer.1"], ["layer.2", "layer.3", "logits", "sample"]
    ]  # fmt: skip
    assert [bool(s.tables) for s in segments] == [False, True, False, False, False]
    assert not any(s.ends_at_marker for s in segments)


@pytest.mark.parametrize("marker", ["page_table", "swa_translate", "layer.0"])
def test_a_marker_may_stand_in_any_segment_and_at_its_end(marker: str) -> None:
    made = broken("swa_translate", "layer.0", "layer.1")
    segments = cut(made, marker, gated=True, split=False)
    ends = {s.stages[-1].name for s in segments if s.region is Region.REPLAY}
    assert ends == {"swa_translate", "layer.0", "layer.1", "sample", marker}
    assert [s.stages[-1].name for s in segments if s.ends_at_marker] == [marker]
    gates = [step.name for segment in segments for step in segment.steps if step.kind == "gate"]
    assert tuple(gates) == made.gate_positions()
    behind = next(s for s in segments if s.steps[0].name == marker)  # the gate is in the executable behind the cut
    assert behind.steps[0].kind == "gate"


def test_on_two_devices_a_break_cuts_once_where_the_device_changes_anyway() -> None:
    made = broken("layer.0", "layer.1", attention="live")
    assert names(cut(made, "swa_translate.1", gated=False, split=True)) == [
        ["stage_inputs"], ["page_table"], ["embed", "layer.0"], ["swa_translate.1"], ["layer.1"], ["layer.2"],
        ["swa_translate.3"], ["layer.3", "logits", "sample"], ["relay"],
    ]  # fmt: skip


def test_an_output_that_no_stage_gives_is_refused() -> None:
    stage = Stage("only", Region.REPLAY, "embed", gives=("hidden",))
    made = ForwardProgram("p", ForwardMode.DECODE, BatchLayout(1, 1), (stage,), outputs=("hidden", "text"))
    with pytest.raises(InputError, match=r"program 'p': outputs \['text'\] are given by no stage"):
        cut(made, None, gated=False, split=False)
