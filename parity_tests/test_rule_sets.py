"""The historical rule sets, measured: where a set is unsound by its declarations, the write lands before the boundary."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from warfence.backends import load
from warfence.core.backend import Backend
from warfence.core.modes import FenceMode
from warfence.core.policy import RULES, is_early
from warfence.parity.cells import BATCHES, FINE, MODES, Cell
from warfence.parity.history import RULE_SETS, STATES
from warfence.parity.matrix import Rig, run_cell
from warfence.parity.report import in_full
from warfence.parity.rig import program_of
from warfence.parity.small import SmallModel, small_model

Target = tuple[str, str]
pytestmark = pytest.mark.slow


def unsound(rules: str, small: SmallModel) -> list[Cell]:
    """The cells, without marker, in which the set publishes earlier than the reads are declared to end."""
    found = []
    wanted = {
        "decode": ("captured", "live"),
        "target_verify+dflash": ("segmented", "rereading"),
        "draft_extend+eagle": ("captured",),
    }
    for mode in (m for m in MODES if m.name in wanted):
        for attention in wanted[mode.name]:
            cell = Cell(mode, attention, False, FINE, BATCHES[0])
            _, fence = program_of(cell, small.config, RULE_SETS[rules])
            query = fence.query(mode.mode, marker=False)
            if is_early(query, fence.decide(mode.mode, marker=False).policy):
                found.append(cell)
    return found


SMALL = small_model()
DISTINCT = list(
    {state.rules: state.name for state in reversed(STATES)}.values()
)  # three states decide by the same rules
CASES = [(rules, cell) for rules in DISTINCT for cell in unsound(rules, SMALL)]


def test_each_historical_set_has_unsound_cells_and_ours_has_none() -> None:
    assert {rules for rules, _ in CASES} == set(DISTINCT)
    assert unsound("warfence", SMALL) == []


@pytest.fixture(scope="module")
def rig(target: Target) -> Iterator[Rig]:
    made = Rig(load(target[0])(device=target[1]), SMALL)
    yield made
    made.backend.close()


@pytest.mark.parametrize(("rules", "cell"), CASES, ids=[f"{rules}: {cell.name}" for rules, cell in CASES])
def test_a_historical_set_releases_before_the_boundary(rig: Rig, target: Target, rules: str, cell: Cell) -> None:
    """An in-graph declaration without marker, or a draft extend, recorded before the replay (public source: sglang #33587)."""
    result = run_cell({target[0]: rig}, cell, rules=RULE_SETS[rules])
    release = result.release[target[0]]
    if release is None:
        pytest.skip(result.notes[target[0]])
    order = rig.planned(cell)[0].forward.program.gate_positions()
    assert order.index(release.opened) < order.index(result.boundary), in_full(result)
    assert not result.sound
    assert run_cell({target[0]: rig}, cell, rules=RULES).ok


def test_the_adversary_finds_what_an_early_ticket_permits(
    target: Target,
    engines: Callable[..., object],
    make_backend: Callable[..., Backend],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And in text: the rules of #34982 without markers, in the worst order, give wrong tokens."""
    from parity_tests.plugin import unguarded_options
    from warfence.core.policy import Decision, Query, decide
    from warfence.parity.small import first_difference, make_engine, serve

    def early(query: Query, rules: object = None) -> Decision:
        return decide(query, RULE_SETS["34982"])

    monkeypatch.setattr("warfence.core.forwards.decide", early)
    backend = make_backend(**unguarded_options(target))
    sizes = {"rows": 2, "extend_rows": 1}
    with make_engine(
        SMALL, backend, attention="live", markers=False, forced_order="last", trusting=True, **sizes
    ) as engine:
        requests, summary = serve(engine, fence=FenceMode.FINE)
    assert summary.policies["pre_replay"] > 0
    assert summary.forced_order["landed_before_read"] > 0
    assert first_difference(requests, SMALL.expected[False]) is not None
