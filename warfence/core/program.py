"""What a forward reads and writes, in order: stages and programs.

A program is data. A backend turns each stage into a call of its kernel `op`; the kernel sees only the names that the
stage declares, so a declaration cannot be shorter than the truth: an undeclared read fails with the name of the stage.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from warfence.core.batch import BatchLayout
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode, Region

Gated = bool | frozenset[str]  # a gate at every position, at none, or at these
REQ_TO_TOKEN, FULL_TO_SWA = "req_to_token", "full_to_swa"  # the shared tables that every program knows
START = "start"  # the gate position before the first stage


@dataclass(frozen=True, slots=True)
class Stage:
    """One named step of a forward.

    reads: shared tables read here (scheduler-written, so these reads are what the fence protects).
    takes / gives: values of the forward's own workspace that the kernel uses / leaves (batch fields included).
    state: forward-private arrays updated in place (KV pools, the token relay). params: weights.
    """

    name: str
    region: Region
    op: str
    reads: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    attrs: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a captured region does: run a stage, record the marker, or pass the gate at position `name`."""

    kind: Literal["stage", "marker", "gate"]
    name: str
    stage: Stage | None = None


@dataclass(frozen=True, slots=True)
class ForwardProgram:
    """The stages of one forward shape, in order. `outputs` are the workspace values that the host gets.

    breaks: replay stages after which the captured forward is broken into a next segment, issued by itself (a graph with
    breaks). It changes what is captured together, never what runs, nor in which order.
    """

    name: str
    mode: ForwardMode
    layout: BatchLayout
    stages: tuple[Stage, ...]
    outputs: tuple[str, ...]
    breaks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [s.name for s in self.stages]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice or START in names:
            raise InputError(
                f"program '{self.name}': stage names must be unique and not '{START}'; seen twice: {twice}"
            )
        regions = [s.region for s in self.stages]
        if regions != sorted(regions):
            raise InputError(f"program '{self.name}': stages must be ordered load_batch, replay, tail; seen {regions}")
        known = set(self.layout.fields)
        for stage in self.stages:
            missing = [v for v in stage.takes if v not in known]
            if missing:
                raise InputError(
                    f"program '{self.name}', stage '{stage.name}' takes {missing}, which nothing before it gives"
                )
            known.update(stage.gives)
        replay = [s.name for s in self.stages if s.region is Region.REPLAY]
        if strange := [b for b in self.breaks if b not in replay[:-1]]:
            raise InputError(
                f"program '{self.name}': breaks after {strange}; a break stands after a replay stage but the last: "
                f"{', '.join(replay[:-1]) or 'there is none'}"
            )

    def region(self, region: Region) -> tuple[Stage, ...]:
        return tuple(s for s in self.stages if s.region is region)

    def index(self, name: str) -> int:
        """Position of a stage; -1 for START. An unknown name raises InputError with the nearest names."""
        if name == START:
            return -1
        for i, stage in enumerate(self.stages):
            if stage.name == name:
                return i
        names = [s.name for s in self.stages]
        near = difflib.get_close_matches(name, names, n=3) or names
        raise InputError(f"program '{self.name}' has no stage '{name}'; nearest: {', '.join(near)}")

    def steps(self, region: Region, marker_after: str | None, gated: Gated) -> tuple[Step, ...]:
        """What a backend captures for one region, in order.

        A gate stands after the marker. The gate after the last stage of a region stands at the head of the next one,
        behind the point where the runner records a ticket between the two.
        """
        if marker_after is not None:
            self.check_marker(marker_after)
        steps: list[Step] = []
        gates = self.gate_positions(gated)
        for i, stage in enumerate(self.stages):
            if stage.region is not region:
                continue
            before = self.stages[i - 1].name if i else START
            if before in gates and (i == 0 or self.stages[i - 1].region is not region):
                steps.append(Step("gate", before))
            steps.append(Step("stage", stage.name, stage))
            if stage.name == marker_after:
                steps.append(Step("marker", stage.name))
            last = i + 1 == len(self.stages)
            if stage.name in gates and (last or self.stages[i + 1].region is region):
                steps.append(Step("gate", stage.name))
        return tuple(steps)

    def check_marker(self, stage: str) -> None:
        """InputError unless a marker can stand after that stage: it must be one of the replay."""
        replay = [s.name for s in self.region(Region.REPLAY)]
        if self.index(stage) < 0 or stage not in replay:
            raise InputError(
                f"program '{self.name}': a marker stands after a replay stage ({', '.join(replay)}), not '{stage}'"
            )

    def gate_positions(self, gated: Gated = True) -> tuple[str, ...]:
        """Where a gated forward has gates: before the first stage and after every stage, or only at the positions named."""
        every = (START, *(s.name for s in self.stages))
        return tuple(p for p in every if p in gated) if isinstance(gated, frozenset) else every if gated else ()

    def readers(self) -> tuple[Stage, ...]:
        """The stages that read a shared table, in order."""
        return tuple(s for s in self.stages if s.reads)

    def read_boundary(self) -> Stage | None:
        """The last stage that reads a shared table; None when no stage does."""
        readers = self.readers()
        return readers[-1] if readers else None

    def before(self, name: str) -> str:
        """The gate position right before a stage: the name of the stage before it, or START."""
        i = self.index(name)
        return self.stages[i - 1].name if i > 0 else START


def page_table() -> Stage:
    """The slots of the batch's rows: the read of `req_to_token`."""
    return Stage(
        "page_table",
        Region.LOAD_BATCH,
        "page_table",
        reads=(REQ_TO_TOKEN,),
        takes=("req_pool_indices",),
        gives=("page_table",),
    )


def token_locs() -> Stage:
    """Write locations out of the snapshot, for rows whose length only the device knows."""
    takes = ("page_table", "positions", "extend_lens")
    return Stage("token_locs", Region.REPLAY, "token_locs", takes=takes, gives=("out_cache_loc",))
