"""What one executable runs: the kernels of its segment, with gates where the program has them.

A gate is a callback that all live values pass through. A callback fires as soon as its operands are there, wherever it
is written; so what comes before it must be an operand of it, and what comes after it must use what it returns.
`io_callback` has an effect, so it is never left out. State needs no pass: its updates are indexed and filled by values
that did pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax import Array, ShapeDtypeStruct
from jax.experimental import io_callback

from warfence.core.errors import InputError, StageError
from warfence.core.gates import HostGates
from warfence.core.program import Stage
from warfence.host.cuda_gates import StreamGates
from warfence_jax.compiler import token_of, touch
from warfence_jax.kernels import run_stage
from warfence_jax.marking import mark
from warfence_jax.segments import Segment
from warfence_jax.words import Fields, layout_of, pack, unpack

COMPILE = 0  # the launch number in a StageError that comes up before any launch
OUTPUTS = "outputs"  # the words of a program's outputs

Known = dict[str, Array]


class Body:
    """The function of one segment.

    takes: names of the values that it takes. layouts: of those that are words, what to use of them. packed_as: the name of
    the words that its values leave in; None: they leave one by one. loops: as in `marking.mark`. event:
    what a marked segment records. counts: it counts a word (behind the event, where there is one).
    """

    def __init__(
        self, segment: Segment, takes: tuple[str, ...], layouts: Mapping[str, Fields], packed_as: str | None,
        loops: bool = True, event: Any = None,
        counts: bool = True,
    ) -> None:  # fmt: skip
        self._segment, self._takes, self._layouts, self._packed_as = segment, takes, layouts, packed_as
        self._loops, self._event = loops, event
        self._takes_word = segment.marked and counts
        outputs = (OUTPUTS,) if segment.outputs else ()
        self.gives = ((packed_as,) if packed_as is not None else segment.gives) + outputs
        self.layouts_made: dict[str, Fields] = {}  # of the words among `gives`; known once the function was traced

    def function(self, gates: HostGates | StreamGates | None) -> Callable[..., tuple[Array, ...]]:
        """(tables, values, state, params, order, wait) -> (values, state, token), all flat. Where the segment is marked, word
        and zero come before order, and the word before the token."""
        segment = self._segment
        names = (*segment.tables, *self._takes, *segment.state, *segment.params)

        def run(*arguments: Array) -> tuple[Array, ...]:
            *given, order, wait = arguments
            word, zero = given[-2:] if self._takes_word else (order, wait)
            given = given[:-2] if self._takes_word else given
            marked = False
            known = dict(zip(names, given, strict=True))
            for words, fields in self._layouts.items():
                known |= unpack(fields, known[words])
            for i, step in enumerate(segment.steps):
                if step.stage is not None:
                    known |= _run(step.stage, known)
                elif step.kind == "marker":
                    if self._event is not None:
                        order = _record(self._event, segment, i, known, order)
                    if self._takes_word:
                        word, marked = _mark(segment, i, known, word, zero, order, self._loops), True
                else:
                    order = _gate(gates, step.name, segment, i, known, order, [word] if marked else [])
            results = [*self._leave(known), *(known[n] for n in segment.state), *([word] if self._takes_word else [])]
            return (*results, token_of(order, wait, results))

        return run

    def _leave(self, known: Known) -> list[Array]:
        """The values in `gives`: as they are, or as words whose layout is noted."""
        segment = self._segment
        holds = {self._packed_as: segment.gives, OUTPUTS: segment.outputs}
        for words in self.gives:
            if words in holds:
                shapes = {n: ShapeDtypeStruct(known[n].shape, known[n].dtype) for n in holds[words]}
                self.layouts_made[words] = layout_of(shapes)
                known[words] = pack(self.layouts_made[words], known)
        return [known[n] for n in self.gives]


def _run(stage: Stage, known: Known) -> Known:
    try:
        with jax.named_scope(stage.name):
            return run_stage(stage, known)
    except Exception as error:
        raise StageError(COMPILE, stage.name, error) from error


def _mark(segment: Segment, i: int, known: Known, word: Array, zero: Array, order: Array, loops: bool) -> Array:
    """Increment the word behind all that was read before step i (by executables before this one too: `order`), and put what
    uses it behind the word, in place."""
    read, touched = _read(segment, i, known)
    word, values = mark(word, zero, [known[n] for n in read], [order, *touched], loops)
    known.update(zip(read, values, strict=True))
    return word


def _record(event: Any, segment: Segment, i: int, known: Known, order: Array) -> Array:
    """Record the event behind all that was read before step i, in place. Returns `order`, which is behind it too."""
    from warfence_jax.gpu.inside import recorded

    read, touched = _read(segment, i, known)
    *values, order = recorded(event, [*(known[n] for n in read), order, *touched], len(read) + 1)
    known.update(zip(read, values, strict=True))
    return order


def _read(segment: Segment, i: int, known: Known) -> tuple[list[str], list[Array]]:
    """The values that readers before step i gave, and an element of each state array that they wrote."""
    readers = [step.stage for step in segment.steps[:i] if step.stage is not None and step.stage.reads]
    read = [n for n in dict.fromkeys(n for s in readers for n in s.gives) if n in known]
    return read, [touch(known[n]) for n in dict.fromkeys(n for s in readers for n in s.state)]


def _gate(
    gates: HostGates | StreamGates | None,
    position: str,
    segment: Segment,
    i: int,
    known: Known,
    order: Array,
    marked: list[Array],
) -> Array:
    """Pass all that is used after step i through the gate, in place. Returns `order`, which passes too. marked: the word, if it
    was incremented already; the gate is behind it, but it does not pass, or it would show only behind the gate."""
    if gates is None:
        raise InputError(f"segment '{segment.label}' has a gate at '{position}', but the forward has no gates")
    used = {n for step in segment.steps[i:] if step.stage is not None for n in step.stage.takes}
    names = sorted(n for n in {*used, *segment.gives, *segment.outputs} if n in known)

    before = segment.steps[i - 1].stage if i else None
    operands = [*(known[n] for n in names), order, *marked, *_leftovers(before, known, names)]
    passed = len(names) + 1
    *values, order = (
        _stream_gate(gates, position, operands, passed)
        if isinstance(gates, StreamGates)
        else (_host_gate(gates, position, operands, passed))
    )
    known.update(zip(names, values, strict=True))
    return order


def _stream_gate(gates: StreamGates, position: str, operands: list[Array], passed: int) -> list[Array]:
    from warfence_jax.gpu.inside import gate

    return gate(gates, position, operands, passed)


def _host_gate(gates: HostGates, position: str, operands: list[Array], count: int) -> list[Array]:
    def pass_through(*passed: Array) -> tuple[Array, ...]:
        gates.pass_through(position)
        return passed[:count]

    shapes = tuple(ShapeDtypeStruct(v.shape, v.dtype) for v in operands[:count])
    return list(io_callback(pass_through, shapes, *operands))


def _leftovers(stage: Stage | None, known: Known, passed: list[str]) -> list[Array]:
    """What the stage before a gate made and does not pass it anyway, so that the gate is behind all of the stage.

    Values are whole: of one element alone, XLA would compute that element first and the rest behind the gate.
    """
    if stage is None:
        return []
    return [*(known[n] for n in stage.gives if n not in passed), *(touch(known[n]) for n in stage.state)]
