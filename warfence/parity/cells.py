"""The parity matrix: which combinations of mode, attention, marker, fence and batch there are, and what each must show."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from warfence.core.attention import attention_names, make_attention
from warfence.core.modes import FenceMode, ForwardMode, Region, WarReadDonePolicy
from warfence.core.program import ForwardProgram
from warfence.parity.probe import END
from warfence.serve.spec import get, names

FINE, COARSE, DONATION = "fine", "coarse", "donation"
FENCES = {FINE: FenceMode.FINE, COARSE: FenceMode.COARSE, DONATION: FenceMode.OFF}
BATCHES = (1, 3)
TOLD = ("unknown", "composite", "hybrid")  # attention kinds that were told apart by the modes before the narrow ones


@dataclass(frozen=True, slots=True)
class ModeCase:
    """A forward mode with the prefill switch, whether a prefix lies in the cache already, and the speculative algorithm.

    narrow: probed with one batch size and without the attention kinds in TOLD. Those of plug-ins are probed everywhere.
    """

    name: str
    mode: ForwardMode
    prefill_enabled: bool = False
    later_chunk: bool = False
    spec: str = "none"
    narrow: bool = False


MODES = (
    ModeCase("decode", ForwardMode.DECODE, later_chunk=True),
    ModeCase("extend", ForwardMode.EXTEND),
    ModeCase("extend+switch", ForwardMode.EXTEND, prefill_enabled=True),
    ModeCase("extend+switch, later chunk", ForwardMode.EXTEND, prefill_enabled=True, later_chunk=True),
    ModeCase("target_verify+dflash", ForwardMode.TARGET_VERIFY, later_chunk=True, spec="dflash", narrow=True),
    ModeCase("target_verify+ngram", ForwardMode.TARGET_VERIFY, later_chunk=True, spec="ngram", narrow=True),
    ModeCase("target_verify+eagle", ForwardMode.TARGET_VERIFY, later_chunk=True, spec="eagle", narrow=True),
    ModeCase("draft_extend+eagle", ForwardMode.DRAFT_EXTEND, later_chunk=True, spec="eagle", narrow=True),
    ModeCase("decode+dflash", ForwardMode.DECODE, later_chunk=True, spec="dflash", narrow=True),
    ModeCase("extend+switch+dflash", ForwardMode.EXTEND, prefill_enabled=True, spec="dflash", narrow=True),
    ModeCase("mixed", ForwardMode.MIXED, prefill_enabled=True, later_chunk=True, narrow=True),
    ModeCase("mixed+dflash", ForwardMode.MIXED, prefill_enabled=True, later_chunk=True, spec="dflash", narrow=True),
    ModeCase("mixed+ngram", ForwardMode.MIXED, prefill_enabled=True, later_chunk=True, spec="ngram", narrow=True),
    ModeCase("idle", ForwardMode.IDLE, narrow=True),
)


def mode_cases() -> tuple[ModeCase, ...]:
    """The modes above, and verify (and draft extend) of each plug-in algorithm that runs without a trained draft.

    So whoever declares a capability that the algorithm does not keep sees it measured.
    """
    plug_ins = [get(name) for name in names() if all(case.spec != name for case in MODES)]
    made = []
    for algorithm in plug_ins:
        if algorithm.speculative and algorithm.make is not None and not algorithm.needs_draft:
            modes = dict.fromkeys(
                [ForwardMode.TARGET_VERIFY, *(m for _, m in algorithm.phases(ForwardMode.TARGET_VERIFY))]
            )
            made += [
                ModeCase(f"{m.value}+{algorithm.name}", m, spec=algorithm.name, later_chunk=True, narrow=True)
                for m in modes
            ]
    return (*MODES, *made)


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination. `fence` is "fine", "coarse" (forced) or "donation" (no barrier: only the runtime's own hold)."""

    mode: ModeCase
    attention: str
    marker: bool
    fence: str
    batch: int

    @property
    def name(self) -> str:
        marker = "marker" if self.marker else "no marker"
        return f"{self.mode.name} / {self.attention} / {marker} / {self.fence} / batch {self.batch}"


def matrix(modes: tuple[str, ...] = (), attentions: tuple[str, ...] = ()) -> Iterator[Cell]:
    """All cells, of these modes and attention backends only where any are named."""
    for mode, attention, marker, batch, fence in itertools.product(
        mode_cases(), attention_names(), (True, False), BATCHES, FENCES
    ):
        if batch != BATCHES[0] and (mode.narrow or make_attention(attention, ()).segmented):
            continue
        if mode.narrow and attention in TOLD:
            continue
        speculates = mode.mode in (ForwardMode.TARGET_VERIFY, ForwardMode.DRAFT_EXTEND)
        by_value = mode.mode.value in modes and (mode.spec == "none" or speculates)
        if (not modes or mode.name in modes or by_value) and (not attentions or attention in attentions):
            yield Cell(mode, attention, marker, fence, batch)


def expected_release(cell: Cell, program: ForwardProgram, policy: WarReadDonePolicy, marker_stage: str | None) -> str:
    """Where the rules put the release: from the policy for a barrier, from the cuts of the chain for a donation hold."""
    last_load = program.region(Region.LOAD_BATCH)[-1].name
    last_replay = program.region(Region.REPLAY)[-1].name
    if cell.fence == DONATION:
        boundary = program.read_boundary()
        if boundary is None or boundary.region is Region.LOAD_BATCH:
            return last_load
        if boundary.region is Region.TAIL:
            return END
        at = program.index(boundary.name)
        breaks = [b for b in program.breaks if program.index(b) >= at]
        return marker_stage if marker_stage is not None else (*breaks, last_replay)[0]
    if cell.fence == COARSE or policy is WarReadDonePolicy.NONE:
        return END
    if policy is WarReadDonePolicy.PRE_REPLAY:
        return last_load
    if policy is WarReadDonePolicy.IN_GRAPH and marker_stage is not None:
        return marker_stage
    return last_replay
