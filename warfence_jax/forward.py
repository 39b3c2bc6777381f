"""A forward as a chain of executables, dispatched one after the other on the forward lane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from warfence.core.backend import Marker
from warfence.core.batch import Batch
from warfence.core.errors import FenceError, InputError, StageError, WarfenceError
from warfence.core.gates import HostGates
from warfence.core.modes import Region
from warfence.core.program import ForwardProgram
from warfence.host.cuda_gates import StreamGates
from warfence_jax.body import OUTPUTS
from warfence_jax.clock import Clock, Span
from warfence_jax.executables import BATCH, Executable
from warfence_jax.fence_word import NOTHING_INSIDE, Inside
from warfence_jax.lanes import JaxLane
from warfence_jax.tables import Tables, Version, dead_handle
from warfence_jax.tokens import Promise, Record
from warfence_jax.words import Fields, view


class Launch:
    """One issue of a forward: the captured versions, and the values as its executables leave them."""

    __slots__ = ("batch", "fetched", "last", "number", "span", "values", "versions")

    def __init__(self, number: int, batch: Batch, versions: dict[str, Version]) -> None:
        self.number = number
        self.versions = versions
        self.batch = batch.words  # never written again, so a device may alias it
        self.values: dict[str, Array] = {}
        self.last: Promise | None = None  # the token of the executable enqueued last
        self.span = Span()
        self.fetched: Any = None  # the results on their way, where this package transfers them itself


class JaxOutputs:
    """Results of one launch; there when its last executable has run."""

    def __init__(self, launch: Launch, lane: Any, fields: Fields, transfers: Any = None) -> None:
        self.launch = launch.number
        self._transfers = transfers
        self._taken: np.ndarray | None = None
        self._device_s: float | None = None
        self._launch, self._lane, self._fields = launch, lane, fields
        self._asked = False

    @property
    def device_s(self) -> float | None:
        """After `result`: seconds from the dispatch of the first executable, or from the end of the launch before where
        that is later, to the end of the last one. Waits at a gate, or for the schedule lane, count. None after a failure.

        Host time, on a GPU too: see `warfence_jax.clock`. Blocks for the clock's thread, so who does not ask does not pay.
        """
        if self._transfers is not None:
            return self._device_s
        return self._launch.span.seconds() if self._asked else None

    def result(self) -> Mapping[str, np.ndarray]:
        if self._launch.last is not None:
            self._launch.last.await_dispatch()
        if OUTPUTS not in self._launch.values:  # never dispatched: this launch or one before it failed
            self._lane.check()
        self._asked = True
        if self._transfers is not None:
            if self._taken is None:
                self._taken, self._device_s = self._launch.fetched.take()
                self._transfers.give_back(self._launch.fetched)
            return view(self._fields, self._taken)
        try:
            return view(self._fields, np.array(self._launch.values[OUTPUTS]))
        except RuntimeError as error:
            raise StageError(self.launch, OUTPUTS, error) from error


class JaxForward:
    """Implements `warfence.core.backend.Forward`. `state` is shared by all forwards and touched by the forward lane only."""

    def __init__(
        self, program: ForwardProgram, lane: JaxLane, tables: Tables | None, state: dict[str, Array],
        executables: Sequence[Executable], marker_after: str | None, gates: HostGates | StreamGates | None, clock: Clock,
        inside: Inside = NOTHING_INSIDE, transfers: Any = None,
    ) -> None:  # fmt: skip
        self.program = program
        count = inside.memory.count() if inside.memory is not None else 0
        self.marker = Marker(marker_after, inside.memory, count) if marker_after is not None else None
        self.word, self._event, self._transfers = inside.word, inside.event, transfers
        self.gates = gates
        self.executables = tuple(executables)
        self._lane, self._tables, self._state, self._clock = lane, tables, state, clock
        self._record = Record()  # of the marker: armed anew by each replay
        self._launch: Launch | None = None
        self._reads = tuple(dict.fromkeys(n for e in executables for n in e.segment.tables))

    def load_batch(self, batch: Batch, launch: int) -> None:
        self._lane.check()
        seen, taken = batch.layout, self.program.layout
        if seen != taken:
            raise InputError(
                f"launch {launch}: '{self.program.name}' takes {taken.rows} rows of {taken.queries} queries, "
                f"the batch has {seen.rows} of {seen.queries}"
            )
        versions = self._tables.capture(self._lane, self._reads) if self._tables is not None else {}
        self._launch = Launch(launch, batch, versions)
        if self._transfers is not None:
            self._launch.values[BATCH] = self._transfers.upload(batch.words)
        self._issue(self._launch, Region.LOAD_BATCH)

    def replay(self, launch: int) -> None:
        boundary = self._issue(self._current(launch), Region.REPLAY)
        if self.marker is not None and self.marker.word is None and self._event is not None:
            self.marker.issued(launch, self._event.armed(launch))
        elif self.marker is not None:
            self._record.arm(launch, boundary)
            self.marker.issued(launch, self._record)

    def tail(self, launch: int) -> JaxOutputs:
        current = self._current(launch)
        self._issue(current, Region.TAIL)
        self._launch = None
        return JaxOutputs(current, self._lane, self.executables[-1].outputs, self._transfers)

    def _current(self, launch: int) -> Launch:
        if self._launch is None or self._launch.number != launch:
            raise FenceError(f"'{self.program.name}': launch {launch} goes on without its own load_batch")
        return self._launch

    def _issue(self, launch: Launch, region: Region) -> tuple[Promise, ...]:
        """Enqueue the executables of a region. Returns the token at the marker's cut, where the region has it."""
        boundary: tuple[Promise, ...] = ()
        for executable in self.executables:
            if executable.segment.region is region:
                run = partial(self._dispatch, launch, executable)
                promise = self._lane.enqueue(executable.device, run, blocking=executable.gated)
                launch.last = promise
                if self._tables is not None:
                    for name in executable.segment.tables:
                        self._tables.taken(launch.versions[name], promise)
                if executable.segment.ends_at_marker:
                    boundary = (promise,)
        return boundary

    # -- on the lane's thread

    def _dispatch(self, launch: Launch, executable: Executable, order: Array, wait: Array) -> Array:
        segment = executable.segment
        versions = [launch.versions[n] for n in segment.tables]
        try:
            arguments = [
                *(v.handle for v in versions),
                *(self._value(launch, n, executable) for n in executable.takes),
                *(self._state[n] for n in segment.state),
                *executable.params,
            ]
            if executable.gated:
                # A program with a callback runs in the thread that dispatches it only when nothing is left to wait for.
                jax.block_until_ready(arguments)
            launch.span.begin()
            results = self._call(executable, arguments, order, wait)
        except WarfenceError:
            raise
        except Exception as error:
            dead = [v for v in versions if v.dead()]
            if dead and self._tables is not None:
                self._tables.refused += 1
                raise dead_handle(dead[0], launch.number, segment.label) from error
            raise StageError(launch.number, segment.label, error) from error
        launch.values.update(zip(executable.gives, results, strict=False))
        self._state.update(zip(segment.state, results[len(executable.gives) :], strict=False))
        if executable.outputs and self._transfers is not None:
            launch.fetched = self._transfers.fetch(results[len(executable.gives) - 1])
        elif executable.outputs:
            results[len(executable.gives) - 1].copy_to_host_async()  # the outputs come last
        token: Array = results[-1]
        if executable is self.executables[-1] and self._transfers is None:
            self._clock.watch(launch.span, token)
        return token

    def _call(self, executable: Executable, arguments: list[Any], order: Array, wait: Array) -> list[Array]:
        """Run it. A marked one takes the word and gives it back: (values, state, token) remain."""
        if not executable.segment.marked or self.word is None:
            results = list(executable.compiled(*arguments, order, wait))
            if executable.segment.marked and self._event is not None and self._event.failure is not None:
                failure, self._event.failure = self._event.failure, None
                raise failure
            return results
        handle = self.word.take()
        try:
            *results, word, token = executable.compiled(*arguments, handle, self.word.zero, order, wait)
            self.word.give(word)
        finally:
            self.word.free()
        return [*results, token]

    @staticmethod
    def _value(launch: Launch, name: str, executable: Executable) -> np.ndarray | Array:
        """A value where the executable runs, moved there once."""
        if name == BATCH:
            if executable.device.platform == "cpu":
                return launch.batch  # the CPU client takes host memory as it is
            if name not in launch.values:
                launch.values[name] = jax.device_put(launch.batch, executable.device)
        value = launch.values[name]
        if value.device != executable.device:
            launch.values[name] = value = jax.device_put(value, executable.device)
        return value
