"""Steps: what their figures mean, and that a wrong fence cannot look fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from warfence.bench import loop
from warfence.bench.fixture import BenchFixture, Size, difference
from warfence.bench.loop import LEAD_IN, run_block
from warfence.bench.presets import find, tiled_weights
from warfence.bench.strategies import STRATEGIES
from warfence.core.errors import InputError, WarfenceError
from warfence.core.modes import FenceMode
from warfence.parity.strict.backend import StrictBackend

SERIAL, IN_GRAPH, WRITER = (next(s for s in STRATEGIES if s.name == name) for name in ("serial", "in_graph", "writer"))
CONFIG = find("1x32").config("1x32")


@pytest.fixture
def fixture() -> Iterator[BenchFixture]:
    backend = StrictBackend()
    made = BenchFixture(backend, Size(CONFIG, 2, 8), tiled_weights(CONFIG))
    made.fill(made.planned("captured", True))
    yield made
    backend.close()


def test_a_right_fence_gives_the_serial_results(fixture: BenchFixture) -> None:
    planned, work = fixture.planned("captured", True), fixture.work(3)
    expected = fixture.expected(planned, work)
    for strategy in (SERIAL, IN_GRAPH, WRITER):
        assert run_block(fixture, strategy, planned, work, 8, False, expected).step_ms > 0


def test_without_a_fence_the_results_are_wrong_and_nothing_is_measured(fixture: BenchFixture) -> None:
    planned, work = fixture.planned("captured", True), fixture.work(3)
    expected = fixture.expected(planned, work)
    for off in (
        replace(IN_GRAPH, name="none at all", fence=FenceMode.OFF),
        replace(WRITER, name="none at all", at_writer=False),
    ):
        with pytest.raises(
            WarfenceError, match="behind the strategy none at all gave another result than the serial loop"
        ):
            run_block(fixture, off, planned, work, 8, False, expected)


def test_a_live_write_that_changes_nothing_is_no_premise(fixture: BenchFixture) -> None:
    planned, (even, _) = fixture.planned("captured", True), fixture.work(3)
    with pytest.raises(WarfenceError, match=r"the live write changes a margin by .* only"):
        fixture.expected(planned, (even, even))


def test_writes_of_a_step_are_in_rows_that_nobody_uses_but_for_the_live_one(fixture: BenchFixture) -> None:
    for writes in fixture.work(5):
        assert len(writes) == 5
        assert all(len(cells) == len(set(cells.tolist())) == len(values) == 8 for cells, values in writes)
        assert writes[0][0].max() < 2 * 32
        assert all(cells.min() >= 3 * 32 and cells.max() < 8 * 32 for cells, _ in writes[1:])


def test_figures_of_a_block_by_hand() -> None:
    # Each step: 1 s of writes, 2 s of launch, 1 s of barrier, and 6 s until the result of the launch before.
    stamps = [(10.0 * i, 10.0 * i + 1, 10.0 * i + 3, 10.0 * i + 4, 10.0 * (i + 1)) for i in range(LEAD_IN + 5)]
    device: list[float | None] = [99.0] * LEAD_IN + [8.0] * 4 + [99.0]
    block = loop._block(stamps, device, steps=4, behind=1)
    assert block.step_ms == pytest.approx(10e3)
    assert block.lead_ms == pytest.approx(7e3)
    assert block.bubble == pytest.approx(0.2)
    assert (block.writes_us, block.execute_us, block.barrier_us) == pytest.approx((1e6, 2e6, 1e6))


def test_the_serial_loop_has_no_lead_and_its_own_launches() -> None:
    stamps = [(10.0 * i, 10.0 * i + 1, 10.0 * i + 3, 10.0 * i + 4, 10.0 * (i + 1)) for i in range(LEAD_IN + 5)]
    device: list[float | None] = [99.0] * (LEAD_IN + 1) + [5.0] * 4
    block = loop._block(stamps, device, steps=4, behind=0)
    assert block.lead_ms == pytest.approx(-3e3)  # the next launch came 3 s after this one's result
    assert block.bubble == pytest.approx(0.5)


def test_no_clock_on_the_forward_lane_is_no_bubble() -> None:
    stamps = [(0.0, 1.0, 2.0, 3.0, 4.0 * (i + 1)) for i in range(LEAD_IN + 3)]
    assert loop._block(stamps, [None] * (LEAD_IN + 3), steps=2, behind=1).bubble is None


def test_a_difference_is_told_and_a_near_tie_is_none() -> None:
    right = {"next_tokens": np.array([5, 6]), "margin": np.array([0.5, 0.00005])}
    assert difference(right, right) is None
    tie = {"next_tokens": np.array([5, 7]), "margin": np.array([0.5, 0.00002])}
    assert difference(tie, right) is None
    wrong = {"next_tokens": np.array([4, 6]), "margin": np.array([0.5, 0.00005])}
    assert difference(wrong, right) == "row 1: token 4, margin 0.5000, instead of 5, 0.5000"
    apart = {"next_tokens": np.array([5, 6]), "margin": np.array([0.6, 0.00005])}
    assert difference(apart, right) == "row 1: token 5, margin 0.6000, instead of 5, 0.5000"


def test_a_table_without_a_spare_row_is_refused() -> None:
    with pytest.raises(InputError, match="a batch of 8 needs at least 10 table rows"):
        Size(CONFIG, 8, 9)
