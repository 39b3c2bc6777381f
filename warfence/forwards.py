"""The captured forwards of an engine: one per mode and bucket, each with its policy, all made before the first step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from warfence.attention import AttentionBackend
from warfence.backend import Backend, Forward
from warfence.batch import BatchLayout
from warfence.errors import CapacityError
from warfence.forced_order import Hold, gate_of
from warfence.modes import ForwardMode
from warfence.policy import Decision, Query, decide
from warfence.program import ForwardProgram
from warfence.spec import NO_SPEC, SpecAlgorithm

BuildProgram = Callable[[ForwardMode, BatchLayout, bool], ForwardProgram]


@dataclass(frozen=True, slots=True)
class PlannedForward:
    """A compiled forward and where its read-done ticket is recorded. Decided once, when it was captured."""

    forward: Forward
    decision: Decision


@dataclass(frozen=True, slots=True)
class FencePlan:
    """What the policy is asked with, for each forward of an engine. `markers`: plant where the declaration wants it."""

    attention: AttentionBackend
    spec: SpecAlgorithm = NO_SPEC
    prefill_enabled: bool = False
    markers: bool = True

    def marker_stage(self, mode: ForwardMode) -> str | None:
        """Where a marker of this mode belongs; None where none is wanted."""
        return self.attention.last_reader(mode) if self.markers else None

    def decide(self, mode: ForwardMode, marker: bool) -> Decision:
        """Ask the rules for one captured forward; `marker` is that forward's own (law 8)."""
        return decide(
            Query(
                mode,
                self.attention.shared_read_ends(mode),
                marker=marker,
                verify_read_done=self.spec.supports_target_verify_read_done,
                prefill_enabled=self.prefill_enabled,
                speculative=self.spec.speculative,
                prefill_read_done=self.spec.supports_prefill_read_done,
            )
        )


def buckets(most: int) -> tuple[int, ...]:
    """Batch sizes to capture: 1, 4, 16, ... and `most`."""
    sizes = [1]
    while sizes[-1] * 4 < most:
        sizes.append(sizes[-1] * 4)
    return tuple(dict.fromkeys((*sizes, most)))


class ForwardSet:
    """All forwards of an engine, by mode, bucket and whether anybody samples."""

    def __init__(self) -> None:
        self._made: dict[tuple[ForwardMode, bool], list[tuple[int, PlannedForward]]] = {}

    def capture(
        self, backend: Backend, build: BuildProgram, fence: FencePlan,
        wanted: list[tuple[ForwardMode, BatchLayout, bool]], hold: Hold | None,
    ) -> Iterator[str]:  # fmt: skip
        """Compile everything that is wanted, gated where a forced order holds it; yields each program's name when done."""
        for mode, layout, sampled in wanted:
            program = build(mode, layout, sampled)
            gate = gate_of(program, hold) if hold is not None else None
            gated = frozenset({gate}) if gate is not None else False
            forward = backend.compile(program, marker_after=fence.marker_stage(mode), gated=gated)
            decision = fence.decide(mode, marker=forward.marker is not None)
            made = self._made.setdefault((mode, sampled), [])
            made.append((layout.rows, PlannedForward(forward, decision)))
            made.sort(key=lambda pair: pair[0])
            yield program.name

    def pick(self, mode: ForwardMode, rows: int, sampled: bool) -> PlannedForward:
        """The smallest bucket that holds the rows."""
        for size, planned in self._made.get((mode, sampled), ()):
            if size >= rows:
                return planned
        raise CapacityError(f"no captured forward for {mode.value} with {rows} rows (sampled={sampled})")

    def all(self) -> Iterator[PlannedForward]:
        for made in self._made.values():
            for _, planned in made:
                yield planned
