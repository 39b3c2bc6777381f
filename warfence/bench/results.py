"""What was measured, as data: one object a case, and what JSON makes of it."""

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
    """One strategy in one case. over_ideal: step time over the ideal, round by round. Other figures: see `loop.Block`."""

    policy: str
    fence: str
    steps: int
    step_ms: Spread
    over_ideal: Spread
    figures: Mapping[str, Spread | None]

    @classmethod
    def of(cls, blocks: Sequence[Block], ideal: Spread, steps: int, policy: str, strategy: Strategy) -> StrategyResult:
        step = Spread.of(block.step_ms for block in blocks)
        figures: dict[str, Spread | None] = {}
        for name in FIGURES:
            values = [getattr(block, name) for block in blocks]
            figures[name] = None if None in values else Spread.of(values)
        fence = "serial" if strategy.serial else strategy.fence.value
        return cls(policy, fence, steps, step, step.over(ideal), figures)

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": self.policy, "fence": self.fence, "steps": self.steps, "step_ms": self.step_ms.to_json(),
            "over_ideal": self.over_ideal.to_json(),
            **{name: spread.to_json() if spread is not None else None for name, spread in self.figures.items()},
        }  # fmt: skip

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> StrategyResult:
        figures = {name: _spread(found[name]) for name in FIGURES}
        step, over = Spread.from_json(found["step_ms"]), Spread.from_json(found["over_ideal"])
        return cls(found["policy"], found["fence"], found["steps"], step, over, figures)


def _spread(found: Mapping[str, Any] | None) -> Spread | None:
    return None if found is None else Spread.from_json(found)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case on one backend. ideal_ms: max(forward alone, schedule alone + time to the read boundary), of each round."""

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
    latency_us: Spread | None
    no_latency: str | None
    memory: Memory | None

    def over_reference(self, name: str) -> Spread | None:
        """Step time over that of the fine fence, round by round; None where either was not measured."""
        mine, reference = self.strategies.get(name), self.strategies.get(REFERENCE)
        return mine.step_ms.over(reference.step_ms) if mine is not None and reference is not None else None

    @property
    def fence_share(self) -> float | None:
        """What publish and barrier cost the host over `--fence off`, as a share of a step of the fine fence."""
        mine = self.strategies.get(REFERENCE)
        fine = self.host_costs_us.get("in_graph") or self.host_costs_us["recorded"]
        off = self.host_costs_us["off"]
        return None if mine is None else (fine.median - off.median) / 1e3 / mine.step_ms.median

    def to_json(self) -> dict[str, Any]:
        limits = {n: getattr(self, n).to_json() for n in ("forward_ms", "schedule_ms", "boundary_ms", "ideal_ms")}
        over = {name: self.over_reference(name) for name in self.strategies}
        return {
            "backend": self.backend, "device": self.device, "case": self.case.to_json(), "parameters": self.parameters,
            **limits,
            "strategies": {
                name: {**found.to_json(), f"over_{REFERENCE}": ratio.to_json() if (ratio := over[name]) else None}
                for name, found in self.strategies.items()
            },
            "unavailable": dict(self.unavailable),
            "host_costs_us": {name: spread.to_json() for name, spread in self.host_costs_us.items()},
            "fence_share_of_step": self.fence_share,
            "barrier_latency_us": self.latency_us.to_json() if self.latency_us else None,
            "no_barrier_latency": self.no_latency,
            "memory": self.memory.to_json() if self.memory else None,
        }  # fmt: skip

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> CaseResult:
        limits = {n: Spread.from_json(found[n]) for n in ("forward_ms", "schedule_ms", "boundary_ms", "ideal_ms")}
        return cls(
            backend=found["backend"], device=found["device"], case=Case.from_json(found["case"]),
            parameters=found["parameters"], **limits,
            strategies={name: StrategyResult.from_json(one) for name, one in found["strategies"].items()},
            unavailable=found["unavailable"],
            host_costs_us={name: Spread.from_json(one) for name, one in found["host_costs_us"].items()},
            latency_us=_spread(found["barrier_latency_us"]), no_latency=found["no_barrier_latency"],
            memory=Memory.from_json(found["memory"]) if found["memory"] is not None else None,
        )  # fmt: skip
