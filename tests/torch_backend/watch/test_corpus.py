"""The catalogue as torch programs under watch: every program that torch can express gets its verdict."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from warfence.races.replay.host_cells import NO_BLOCKS, NO_DONATION
from warfence.races.replay.judged import AWAITS, ENDLESS, STALE, THREADS, Judged, judge, judge_all, recall_and_precision
from warfence.races.scenarios.library import catalogue, find
from warfence_torch.tools.replay.watched import WatchPlayer


def wrong(results: list[Judged]) -> list[Judged]:
    return [one for one in results if not one.right]


def test_every_program_gets_its_verdict_on_host_lanes() -> None:
    results = judge_all(catalogue(), WatchPlayer("cpu"))
    assert wrong(results) == []
    assert recall_and_precision(results) == (1.0, 1.0)
    lacks = {one.id: one.lacks for one in results if one.lacks}
    assert len(lacks) < 27
    assert lacks["double-donation"] == NO_DONATION
    assert lacks["block-lifetime"] == NO_BLOCKS


def test_every_program_gets_its_verdict_from_calls_of_cuda(on_cuda: None) -> None:
    results = judge_all(catalogue(), WatchPlayer("cuda"))
    assert wrong(results) == []
    assert recall_and_precision(results) == (1.0, 1.0)
    assert {one.lacks for one in results if one.lacks} == {NO_DONATION, THREADS, AWAITS, ENDLESS, STALE}


def test_a_block_that_is_gone_is_refused_with_its_name() -> None:
    judged = judge(find("use-after-free"), WatchPlayer("cpu"))
    assert (judged.verdict, judged.refused) == ("error", "the block 'x' is gone: its last name was dropped")
