"""Turns a segment into an ahead-of-time executable, with gates where the program has them.

Arguments, flat: [batch words], tables, values of earlier segments, state (donated), params, order, wait.
Results, flat: values for later segments, state, token.

A gate is a callback that all live values pass through. A callback fires as soon as its operands are there, wherever
it is written; so what comes before it must be an operand of it, and what comes after it must use what it returns.
`io_callback` has an effect, so it is never left out. State needs no pass: its updates are indexed and filled by
values that did pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, Device, ShapeDtypeStruct
from jax.experimental import io_callback
from jax.stages import Compiled
from jaxtyping import Int32

from warfence.batch import FLOAT, BatchLayout
from warfence.errors import InputError, StageError
from warfence.gates import HostGates
from warfence.program import Stage
from warfence_jax.compiler import Compiler, on, token_of, touch
from warfence_jax.kernels import run_stage
from warfence_jax.segments import Segment

COMPILE = 0  # the launch number in a StageError that comes up before any launch


@dataclass(frozen=True, slots=True)
class Executable:
    """One compiled segment, where it runs, and its weights, which are the same at every launch."""

    segment: Segment
    device: Device
    compiled: Compiled
    params: tuple[Array, ...]
    gated: bool


class Builder:
    """Builds the executables of one program, in order: the shapes of the values come from the segments before."""

    def __init__(self, name: str, layout: BatchLayout, compiler: Compiler, gates: HostGates | None) -> None:
        self._name, self._layout, self._compiler, self._gates = name, layout, compiler, gates
        self._values: dict[str, ShapeDtypeStruct] = {}

    def build(
        self, segment: Segment, device: Device, tables: Mapping[str, ShapeDtypeStruct], state: Mapping[str, Array],
        params: Mapping[str, Array],
    ) -> Executable:  # fmt: skip
        """Compile one segment for one device. StageError names the stage whose kernel failed (launch 0: no launch
        yet)."""
        for kind, wanted, known in (("tables", segment.tables, tables), ("state", segment.state, state)):
            _check_known(segment, kind, wanted, known)
        _check_known(segment, "params", segment.params, params)
        words = [on(device, (self._layout.words,), np.int32)] if segment.fields else []
        scalar = on(device, (), np.int32)
        arguments = [
            *words,
            *(tables[n] for n in segment.tables),
            *(on(device, self._values[n].shape, self._values[n].dtype) for n in segment.takes),
            *(on(device, state[n].shape, state[n].dtype) for n in segment.state),
            *(on(device, params[n].shape, params[n].dtype) for n in segment.params),
            scalar,
            scalar,
        ]
        first = len(words) + len(segment.tables) + len(segment.takes)
        donate = range(first, first + len(segment.state))
        name = f"{self._name}/{segment.label}"
        compiled, results = self._compiler.compile(name, self._function(segment), arguments, donate)
        self._values.update(zip(segment.gives, results, strict=False))
        gated = any(step.kind == "gate" for step in segment.steps)
        return Executable(segment, device, compiled, tuple(params[n] for n in segment.params), gated)

    def _function(self, segment: Segment):
        names = (*segment.tables, *segment.takes, *segment.state, *segment.params)

        def run(*arguments: Array) -> tuple[Array, ...]:
            *rest, order, wait = arguments
            known: dict[str, Array] = {}
            if segment.fields:
                words, *rest = rest
                known |= unpack(self._layout, words)
            known |= dict(zip(names, rest, strict=True))
            for i, step in enumerate(segment.steps):
                if step.stage is None:
                    order = self._gate(step.name, segment, i, known, order)
                    continue
                try:
                    known |= run_stage(step.stage, known)
                except Exception as error:
                    raise StageError(COMPILE, step.name, error) from error
            results = [known[n] for n in (*segment.gives, *segment.state)]
            return (*results, token_of(order, wait, results))

        return run

    def _gate(self, position: str, segment: Segment, i: int, known: dict[str, Array], order: Array) -> Array:
        """Pass every value that is used after step i through the gate, in place; returns `order`, passed through
        too."""
        gates = self._gates
        if gates is None:
            raise InputError(f"segment '{segment.label}' has a gate at '{position}', but the forward has no gates")
        later = [step.stage for step in segment.steps[i:] if step.stage is not None]
        before = segment.steps[i - 1].stage if i else None
        names = sorted({n for s in later for n in s.takes if n in known} | {n for n in segment.gives if n in known})
        values = [known[n] for n in names]

        def pass_through(*passed: Array) -> tuple[Array, ...]:
            gates.pass_through(position)
            return passed[: len(names) + 1]

        operands = [*values, order, *_leftovers(before, known, names)]
        shapes = tuple(ShapeDtypeStruct(v.shape, v.dtype) for v in operands[: len(names) + 1])
        *values, order = io_callback(pass_through, shapes, *operands)
        known.update(zip(names, values, strict=True))
        return order


def unpack(layout: BatchLayout, words: Int32[Array, " words"]) -> dict[str, Array]:
    """The fields of a batch, viewed in its words. What no stage uses is dropped by the compiler."""
    fields = {}
    for name, f in layout.fields.items():
        flat = words[f.offset : f.offset + f.size]
        flat = jax.lax.bitcast_convert_type(flat, jnp.float32) if f.dtype == FLOAT else flat
        fields[name] = flat.reshape(f.shape)
    return fields


def _leftovers(stage: Stage | None, known: Mapping[str, Array], passed: Sequence[str]) -> Sequence[Array]:
    """What the stage before a gate made and does not pass it anyway, so that the gate is behind all of the stage.

    Values are whole: of one element alone, XLA would compute that element first and the rest behind the gate.
    """
    if stage is None:
        return []
    return [*(known[n] for n in stage.gives if n not in passed), *(touch(known[n]) for n in stage.state)]


def _check_known(segment: Segment, kind: str, wanted: Sequence[str], known: Mapping[str, object]) -> None:
    missing = [n for n in wanted if n not in known]
    if missing:
        made = ", ".join(known) or "none"
        raise InputError(f"segment '{segment.label}' needs the {kind} {missing}; made were: {made}")
