"""The judges of a program: arithmetic, where its family has any, the explorer, the checker of event logs, and real lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Protocol

from warfence.races.check.findings import check
from warfence.races.scenarios.explore import Outcome, explore
from warfence.races.scenarios.log import log
from warfence.races.scenarios.program import Scenario

ORACLE, EXPLORER, CHECKER = "oracle", "explorer", "checker"
LANES = "lanes of "  # in front of the name of a backend and its device
Said = Mapping[str, str]  # judge -> verdict
# What a checker finds, the worst first: as in exploration, one of them is the verdict.
_WORST = {"wait-cycle": "cycle", "race": "bad", "over-fencing": "over"}


class LaneJudge(Protocol):
    """Forces what goes wrong on real lanes. name: `torch/cpu` and the like."""

    name: str

    def verdict(self, outcome: Outcome) -> str:
        """ok, bad, cycle or error, as seen; empty where the backend cannot express the program."""
        ...


def judge(scenario: Scenario, expected: str = "", lanes: Sequence[LaneJudge] = ()) -> dict[str, str]:
    """What each judge says. One that cannot judge this program is left out."""
    outcome = explore(scenario)
    said = {
        ORACLE: expected,
        EXPLORER: outcome.verdict,
        CHECKER: checked(outcome),
        **{LANES + one.name: one.verdict(outcome) for one in lanes},
    }
    return {name: verdict for name, verdict in said.items() if verdict}


def checked(outcome: Outcome) -> str:
    """The checker's verdict on the log of the explored trace. Empty where it cannot say.

    Not judged are logs that end early, because the host stops, and those of several host threads. And with an await for a
    record that is called later, accesses may be in order against the order of their calls: the explorer calls that wrong, the
    checker only asks for an order.
    """
    steps = outcome.trace.steps
    if (
        outcome.verdict == "error"
        or len({op.thread for op in outcome.trace.ops}) > 1
        or any(step.kind == "receives" and step.needs for step in steps)
    ):
        return ""
    kinds = check(log(outcome.trace)).kinds()
    verdict = next((verdict for kind, verdict in _WORST.items() if kind in kinds), "ok")
    turned = any(step.kind == "awaits" and max(step.joins, default=0) > step.id for step in steps)
    return "" if turned and verdict in ("ok", "over") else verdict


def disagreement(said: Said) -> tuple[str, str] | None:
    """The first two judges that disagree."""
    return next((pair for pair in combinations(said, 2) if not agree(said, *pair)), None)


def agree(said: Said, one: str, other: str) -> bool:
    """Whether two judges say the same. Lanes cannot tell a wait that is too strong from one that is right."""
    verdicts = {said[one], said[other]}
    if any(name.startswith(LANES) for name in (one, other)):
        verdicts = {"ok" if verdict == "over" else verdict for verdict in verdicts}
    return len(verdicts) == 1
