"""What the strategies run: the program with private copies, and who can do what."""

from __future__ import annotations

import pytest

from warfence.bench.presets import PRESETS, find, tiled_weights
from warfence.bench.programs import decode_program
from warfence.bench.strategies import COPY, NAMES, STRATEGIES, not_taken
from warfence.core.batch import BatchLayout
from warfence.core.errors import InputError
from warfence.core.modes import Region, WarReadDonePolicy
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.model.weights import shapes

TINY = PRESETS["tiny"].config("tiny")
LAYOUT = BatchLayout(2, 1)


def test_with_copies_only_the_copy_reads() -> None:
    program, fence = decode_program(TINY, COPY, True, LAYOUT)
    readers = program.readers()
    assert [(stage.name, stage.region) for stage in readers] == [("copy_tables", Region.LOAD_BATCH)]
    assert set(readers[0].gives) == {REQ_TO_TOKEN, FULL_TO_SWA}
    takers = [stage for stage in program.stages if REQ_TO_TOKEN in stage.takes]
    assert [stage.name for stage in takers] == ["page_table", "swa_translate"]
    assert fence.decide(program.mode, marker=False).policy is WarReadDonePolicy.PRE_REPLAY
    assert fence.marker_stage(program.mode) is None


@pytest.mark.parametrize(
    ("attention", "marker", "policy"),
    [("snapshot", True, "pre_replay"), ("captured", True, "in_graph"), ("captured", False, "post_replay")],
)
def test_each_strategy_publishes_where_its_name_says(attention: str, marker: bool, policy: str) -> None:
    program, fence = decode_program(TINY, attention, marker, LAYOUT)
    planted = fence.marker_stage(program.mode) is not None
    assert fence.decide(program.mode, planted).policy.value == policy


def test_names_are_unique_and_the_reference_is_among_them() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert "in_graph" in NAMES


def test_what_a_backend_lacks_has_its_reason() -> None:
    by_name = {strategy.name: strategy for strategy in STRATEGIES}
    without = StrictBackend(external_markers=False).capabilities
    assert by_name["in_graph"].lacking(without) == "no external_markers: switched off"
    assert by_name["donation_only"].lacking(without) == (
        "no guards_writes: tables are written in place; only the fence protects them"
    )
    assert by_name["serial"].lacking(without) is None
    assert not_taken("strict", {"staging": "fresh"}) == "backend strict has no option staging=fresh"
    assert not_taken("strict", {}) is None


@pytest.mark.parametrize("name", [*PRESETS, "12x512", "1x32"])
def test_every_preset_is_a_model(name: str) -> None:
    config = find(name).config(name)
    assert any(config.sliding)
    assert config.heads * config.head_dim == config.hidden


def test_the_large_preset_has_about_a_billion_parameters() -> None:
    sizes = shapes(PRESETS["large"].config("large")).values()
    count = sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in sizes)
    assert 0.9e9 < count < 1.2e9


@pytest.mark.parametrize("name", ["huge", "0x512", "4x100", "4x", "1000x32"])
def test_a_forward_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"unknown forward '{name}'; choose one of: tiny, .* such as 12x512"):
        find(name)


def test_tiled_weights_fit_and_are_the_same_each_time() -> None:
    weights, again = tiled_weights(TINY), tiled_weights(TINY)
    assert {name: array.shape for name, array in weights.items()} == shapes(TINY)
    assert all((weights[name] == again[name]).all() for name in weights)
    assert not (weights["layer.0.wq"][0] == weights["layer.0.wq"][1]).all()
