"""Declarations: composites answer with the latest child, unknown wins, algorithms promise nothing by default."""

from __future__ import annotations

import pytest

from warfence.core.attention import CAPTURED, LIVE, SNAPSHOT, UNKNOWN, AttentionBackend, attention_names, make_attention
from warfence.core.batch import BatchLayout
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode, Region, SharedReadEnds
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.program import build
from warfence.serve.spec import SpecAlgorithm, get, register, registry

CHILDREN = [SNAPSHOT, CAPTURED, LIVE, UNKNOWN]
SLIDING = (1, 3)


@pytest.mark.parametrize("full", CHILDREN, ids=lambda c: c.name)
@pytest.mark.parametrize("sliding", CHILDREN, ids=lambda c: c.name)
@pytest.mark.parametrize("mode", list(ForwardMode))
def test_composite_is_the_latest_child(full, sliding, mode: ForwardMode) -> None:
    ends = AttentionBackend("x", full, sliding, SLIDING).shared_read_ends(mode)
    assert ends is max(full.shared_read_ends(mode), sliding.shared_read_ends(mode))
    if UNKNOWN in (full, sliding):
        assert ends is SharedReadEnds.UNKNOWN


@pytest.mark.parametrize("mode", list(ForwardMode))
def test_a_hybrid_is_the_kind_that_serves_the_mode(mode: ForwardMode) -> None:
    """Not the latest of both: the other one's forwards are other launches."""
    hybrid = make_attention("hybrid", SLIDING)
    serves = make_attention("snapshot" if mode in (ForwardMode.EXTEND, ForwardMode.MIXED) else "captured", SLIDING)
    assert hybrid.shared_read_ends(mode) is serves.shared_read_ends(mode)
    assert hybrid.last_reader(mode) == serves.last_reader(mode)
    assert hybrid.for_mode(mode).children() == serves.children()
    assert hybrid.for_mode(mode).name == hybrid.for_draft().name == "hybrid"


def test_without_sliding_layers_the_sliding_child_is_not_asked() -> None:
    assert (
        AttentionBackend("x", SNAPSHOT, UNKNOWN, ()).shared_read_ends(ForwardMode.DECODE) is SharedReadEnds.PRE_REPLAY
    )


def test_nobody_answering_is_unknown() -> None:
    assert SharedReadEnds.latest([]) is SharedReadEnds.UNKNOWN


def test_modes_that_a_child_does_not_name_are_unknown() -> None:
    assert SNAPSHOT.shared_read_ends(ForwardMode.MIXED) is SharedReadEnds.UNKNOWN
    assert SNAPSHOT.shared_read_ends(ForwardMode.IDLE) is SharedReadEnds.UNKNOWN


@pytest.mark.parametrize("kind", attention_names())
@pytest.mark.parametrize("sliding", [(), (1,), (0, 1)], ids=str)
def test_the_declared_last_reader_is_the_programs_boundary(kind: str, sliding: tuple[int, ...]) -> None:
    flags = tuple(i in sliding for i in range(2))
    config = ModelConfig("m", 9, 8, 2, 2, 1, 4, 8, flags, 4 if sliding else None, 16, 1e4, 1e-5, (0,), None)
    attention = make_attention(kind, sliding)
    program = build(config, attention, ForwardMode.DECODE, BatchLayout(2, 1), sampled=False)
    boundary = program.read_boundary()
    assert boundary is not None
    ends = attention.shared_read_ends(ForwardMode.DECODE)
    if ends is SharedReadEnds.IN_GRAPH:
        assert attention.last_reader(ForwardMode.DECODE) == boundary.name
        assert boundary.region is Region.REPLAY
    else:
        assert attention.last_reader(ForwardMode.DECODE) is None
    if ends is SharedReadEnds.PRE_REPLAY:
        assert boundary.region is Region.LOAD_BATCH


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="unknown attention backend 'flash'; choose one of: snapshot, captured"):
        make_attention("flash", ())


def test_a_plug_in_algorithm_promises_nothing_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        registry, "_REGISTRY", dict(registry._REGISTRY)
    )  # whatever is registered here is gone afterwards
    algorithm = SpecAlgorithm("plug-in-of-a-test")
    assert not algorithm.supports_target_verify_read_done
    assert not algorithm.supports_prefill_read_done
    register(algorithm)
    assert get("plug-in-of-a-test") is algorithm
    with pytest.raises(InputError, match="registered already"):
        register(algorithm)
    with pytest.raises(
        InputError, match="unknown speculative algorithm 'nope'; known: none, ngram, ngram-snapshot, dflash, eagle"
    ):
        get("nope")
