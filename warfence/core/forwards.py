"""The captured forwards of an engine: one per mode and bucket, each with its policy, all made before the first step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from warfence.core.abilities import FindsBoundary, confirm
from warfence.core.attention import AttentionBackend, Snapshots
from warfence.core.backend import Backend, Forward
from warfence.core.batch import Batch, BatchLayout
from warfence.core.errors import CapacityError
from warfence.core.modes import ForwardMode, SharedReadEnds, WarReadDonePolicy
from warfence.core.policy import RULES, Decision, Query, Rule, decide
from warfence.core.program import ForwardProgram, Gated
from warfence.core.promises import NO_PROMISES, Promises, Stager

BuildProgram = Callable[[ForwardMode, BatchLayout, bool], ForwardProgram]
GateProgram = Callable[[ForwardProgram], Gated]


@dataclass(frozen=True, slots=True)
class PlannedForward:
    """A compiled forward and where its read-done ticket is recorded. Decided once, when it was captured.

    stager: where it brings the reads of a prefill forward and that changes the answer; `staged` holds for the launches for
    which it did. snapshots: where an attention backend can snapshot all that a launch reads and that changes the answer;
    `snapshotted` is this forward with such a batch.
    """

    forward: Forward
    decision: Decision
    stager: Stager | None = None
    staged: Decision | None = None
    snapshots: Snapshots | None = None
    snapshotted: PlannedForward | None = None

    def policy_of(self, batch: Batch) -> WarReadDonePolicy:
        """The policy of one launch. Asks attention backend and stager, so call it once, when the batch is loaded."""
        if (
            self.snapshots is not None
            and self.snapshotted is not None
            and self.snapshots(self.forward.program.mode, batch)
        ):
            return self.snapshotted.policy_of(batch)
        if self.stager is not None and self.staged is not None and self.stager(batch):
            return self.staged.policy
        return self.decision.policy


@dataclass(frozen=True, slots=True)
class FencePlan:
    """What the policy is asked with, for each forward of an engine. `markers`: plant where the declaration wants it.

    rules: the rule set that answers; another than ours only to show what it does. trusting: declarations are not compared with
    what the backend finds; only to show what a wrong one does.
    """

    attention: AttentionBackend
    promises: Promises = NO_PROMISES
    prefill_enabled: bool = False
    markers: bool = True
    rules: tuple[Rule, ...] = RULES
    trusting: bool = False

    def marker_stage(self, mode: ForwardMode) -> str | None:
        """Where a marker of this mode belongs; None where none is wanted."""
        return self._attention(mode).last_reader(mode) if self.markers else None

    def query(self, mode: ForwardMode, marker: bool) -> Query:
        """What the rules are asked for one captured forward; `marker` is that forward's own (law 8)."""
        return Query(
            mode,
            self._attention(mode).shared_read_ends(mode),
            marker=marker,
            verify_read_done=self.promises.supports_target_verify_read_done,
            prefill_enabled=self.prefill_enabled,
            speculative=self.promises.speculative,
            prefill_read_done=self.promises.supports_prefill_read_done,
            draft_read_done=self.promises.supports_draft_extend_read_done,
            segmented=self._attention(mode).segmented,
        )

    def decide(self, mode: ForwardMode, marker: bool) -> Decision:
        """Ask the rules for one captured forward."""
        return decide(self.query(mode, marker), self.rules)

    def planned(self, forward: Forward) -> PlannedForward:
        """The forward with its decision. Nobody whose answer would count for nothing is asked when it is launched."""
        mode, marker = forward.program.mode, forward.marker is not None
        query = self.query(mode, marker)
        planned, snapshots = self._planned(forward, query), self._attention(mode).snapshots
        snapshotted = self._planned(forward, replace(query, declared=SharedReadEnds.PRE_REPLAY))
        if snapshots is None or snapshotted == planned:
            return planned
        return replace(planned, snapshots=snapshots, snapshotted=snapshotted)

    def _planned(self, forward: Forward, query: Query) -> PlannedForward:
        stager, staged = self.promises.prefill_stager, decide(replace(query, prefill_read_done=True), self.rules)
        decision = decide(query, self.rules)
        if stager is None or staged.policy is decision.policy:
            return PlannedForward(forward, decision)
        return PlannedForward(forward, decision, stager, staged)

    def _attention(self, mode: ForwardMode) -> AttentionBackend:
        return self.attention.for_draft() if mode is ForwardMode.DRAFT_EXTEND else self.attention.for_mode(mode)


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
        self._beside: dict[tuple[ForwardMode, BatchLayout, bool], list[PlannedForward]] = {}

    def capture(
        self, backend: Backend, build: BuildProgram, fence: FencePlan,
        wanted: list[tuple[ForwardMode, BatchLayout, bool]], gated: GateProgram = lambda program: False,
    ) -> Iterator[str]:  # fmt: skip
        """Compile everything that is wanted, with the gates that `gated` asks for; yields each program's name when done.

        Where the backend finds boundaries itself, what is declared must be what it finds: InputError otherwise.
        """
        for mode, layout, sampled in wanted:
            program = build(mode, layout, sampled)
            marker = fence.marker_stage(mode)
            if isinstance(backend, FindsBoundary) and not fence.trusting:
                confirm(program, backend.find_boundary(program), fence.decide(mode, marker is not None).policy, marker)
            forward = backend.compile(program, marker_after=marker, gated=gated(program))
            planned = fence.planned(forward)
            self._beside.setdefault((mode, layout, sampled), []).append(planned)
            made = self._made.setdefault((mode, sampled), [])
            made.append((layout.rows, planned))
            made.sort(key=lambda pair: pair[0])
            yield program.name

    def beside(self, mode: ForwardMode, layout: BatchLayout, nth: int = 0) -> PlannedForward:
        """The (greedy) forward of that mode that takes the batches of another: a draft's, behind the target's. nth: where
        several were captured for it, in their order."""
        return self._beside[mode, layout, False][nth]

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
