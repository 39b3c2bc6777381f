"""Turns the segments of a program into ahead-of-time executables.

Arguments, flat: tables, values, state (donated), params, [word (donated), zero], order, wait. Results, flat: values, state,
[word], token. Values may be
words that hold several: the batch, what leaves the tables' device, the outputs (`warfence_jax.words`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array, Device, ShapeDtypeStruct
from jax.stages import Compiled

from warfence.core.errors import InputError
from warfence.core.gates import HostGates
from warfence.core.program import ForwardProgram
from warfence.host.cuda_gates import StreamGates
from warfence_jax.body import OUTPUTS, Body
from warfence_jax.compiled import refuse_late
from warfence_jax.compiler import Compiler, Making, Verify, on
from warfence_jax.segments import Segment
from warfence_jax.words import Fields

BATCH = "batch"  # the words of the batch


@dataclass(frozen=True, slots=True)
class Executable:
    """One compiled segment and where it runs.

    takes, gives: names of what it takes from, and leaves in, the values of a launch. params: its weights, the same at
    every launch. outputs: how the outputs lie in their words; empty but for the last executable of a program.
    """

    segment: Segment
    device: Device
    making: Making
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    params: tuple[Array, ...]
    outputs: Fields
    gated: bool

    @property
    def compiled(self) -> Compiled:
        """The executable itself; blocks until it is there."""
        return self.making.get()


class Builder:
    """Builds the executables of one program, in order: shapes and places of values come from the segments before.

    split: the tables' device is not the compute device, so what crosses travels as one vector of words. quick: no time is
    spent on making it fast.
    """

    def __init__(
        self,
        program: ForwardProgram,
        compiler: Compiler,
        gates: HostGates | StreamGates | None,
        *,
        split: bool,
        quick: bool,
        marker_after: str | None = None,
        event: Any = None,
        counts: bool = True,
    ) -> None:
        self._program, self._compiler, self._gates, self._split = program, compiler, gates, split
        self._quick, self._marker, self._event = quick, marker_after, event
        self._counts = counts
        self._shapes = {BATCH: ShapeDtypeStruct((program.layout.words,), np.int32)}
        self._layouts: dict[str, Fields] = {BATCH: program.layout.fields}
        self._source = dict.fromkeys(program.layout.fields, BATCH)  # value -> itself, or the words that hold it now

    def build(
        self, segment: Segment, device: Device, tables: Mapping[str, ShapeDtypeStruct], state: Mapping[str, Array],
        params: Mapping[str, Array],
    ) -> Executable:  # fmt: skip
        """Compile one segment. A StageError names the stage whose kernel failed (launch 0: there is none yet)."""
        _check_known(segment, "tables", segment.tables, tables)
        _check_known(segment, "state", segment.state, state)
        _check_known(segment, "params", segment.params, params)
        takes = tuple(dict.fromkeys(self._source[n] for n in segment.takes))
        # Words may hold values that others have replaced since.
        layouts = {
            words: {n: f for n, f in self._layouts[words].items() if self._source.get(n) == words}
            for words in takes
            if words in self._layouts
        }
        crosses = self._split and segment.on_tables and segment.gives
        body = Body(
            segment,
            takes,
            layouts,
            f"from {segment.label}" if crosses else None,
            device.platform == "cpu",
            self._event,
            self._counts,
        )
        word = [on(device, (1,), np.uint32)] * 2 if segment.marked and self._counts else []
        arguments = [
            *(tables[n] for n in segment.tables),
            *(on(device, self._shapes[n].shape, self._shapes[n].dtype) for n in takes),
            *(on(device, state[n].shape, state[n].dtype) for n in segment.state),
            *(on(device, params[n].shape, params[n].dtype) for n in segment.params),
            *word,
            on(device, (), np.int32),
            on(device, (), np.int32),
        ]
        first = len(segment.tables) + len(takes)
        donated = [*range(first, first + len(segment.state)), *([len(arguments) - 4] if word else [])]
        name = f"{self._program.name}/{segment.label}"
        making, results = self._compiler.compile(
            name,
            body.function(self._gates),
            arguments,
            donated,
            self._quick,
            segment.scope,
            self._verifier(segment, body),
        )
        self._shapes.update(zip(body.gives, results, strict=False))
        self._source |= dict(zip(body.gives, body.gives, strict=True))
        for words, layout in body.layouts_made.items():
            self._layouts[words] = layout
            self._source |= dict.fromkeys(layout, words)
        weights = tuple(params[n] for n in segment.params)
        outputs = body.layouts_made.get(OUTPUTS, {})
        gated = isinstance(self._gates, HostGates) and any(step.kind == "gate" for step in segment.steps)
        return Executable(segment, device, making, takes, body.gives, weights, outputs, gated)

    def _verifier(self, segment: Segment, body: Body) -> Verify:
        """Refuses an executable that uses a table behind its word."""
        if not segment.marked or self._marker is None or not self._counts:
            return lambda compiled: None
        behind = self._program.stages[self._program.index(self._marker) + 1 :]
        where = f"'{self._program.name}', marker after '{self._marker}'"
        later = {table for stage in behind for table in stage.reads}
        word = len(body.gives) + len(segment.state)
        return lambda compiled: refuse_late(compiled, segment.tables, word, where, later)


def _check_known(segment: Segment, kind: str, wanted: Sequence[str], known: Mapping[str, object]) -> None:
    missing = [n for n in wanted if n not in known]
    if missing:
        made = ", ".join(known) or "none"
        raise InputError(f"segment '{segment.label}' needs the {kind} {missing}; made were: {made}")
