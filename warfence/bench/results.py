"""What was measured, as data: one object a case, whose fields are those of the JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warfence.bench.cases import Case
from warfence.bench.loop import Block
from warfence.bench.memory import Memory
from warfence.bench.spread import Spread
from warfence.bench.strategies import REFERENCE, Strategy

FIGURES = ("lead_ms", "bubble", "writes_us", "execute_us", "barrier_us")


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """One strategy in one case. over_ideal: step time over the ideal, round by round; over_in_graph: over the fine fence's.

    Other figures: see `loop.Block`. None: not measured.
    """

    policy: str
    fence: str
    steps: int
    step_ms: Spread
    over_ideal: Spread
    lead_ms: Spread | None
    bubble: Spread | None
    writes_us: Spread | None
    execute_us: Spread | None
    barrier_us: Spread | None
    over_in_graph: Spread | None

    @classmethod
    def of(
        cls, blocks: Sequence[Block], ideal: Spread, fine: Spread | None, steps: int, policy: str, strategy: Strategy
    ) -> StrategyResult:
        """fine: step times of the fine fence in the same rounds; None where it was not measured."""
        step = Spread.of(block.step_ms for block in blocks)
        figures: dict[str, Any] = {}
        for name in FIGURES:
            values = [getattr(block, name) for block in blocks]
            figures[name] = None if None in values else Spread.of(values)
        fence = "serial" if strategy.serial else strategy.fence.value
        over = None if fine is None else step.over(fine)
        return cls(policy, fence, steps, step, step.over(ideal), **figures, over_in_graph=over)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case on one backend. ideal_ms: max(forward alone, schedule alone + time to the read boundary), of each round.

    fence_share_of_step: what publish and barrier cost the host over `--fence off`, as a share of a step of the fine fence.
    """

    backend: str
    device: str
    case: Case
    parameters: int
    forward_ms: Spread
    schedule_ms: Spread
    boundary_ms: Spread
    ideal_ms: Spread
    strategies: Mapping[str, StrategyResult]
    unavailable: Mapping[str, str]
    host_costs_us: Mapping[str, Spread]
    fence_share_of_step: float | None
    barrier_latency_us: Spread | None
    no_barrier_latency: str | None
    memory: Memory | None

    @property
    def key(self) -> str:
        """What two documents call the same case."""
        return f"{self.backend} on {self.device}, {self.case.name}"


def fence_share(strategies: Mapping[str, StrategyResult], host_costs_us: Mapping[str, Spread]) -> float | None:
    """Of a step of the fine fence; None where that was not measured."""
    mine = strategies.get(REFERENCE)
    fine = host_costs_us.get("in_graph") or host_costs_us["recorded"]
    return None if mine is None else (fine.median - host_costs_us["off"].median) / 1e3 / mine.step_ms.median
