"""Issues a cut function on a lane: one executable after the other, in the lane's chain, with the boundary's token between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
from jax import Array

from warfence.core.errors import InputError, StageError, WarfenceError
from warfence_jax.lanes import JaxLane
from warfence_jax.tables import Tables, Version, dead_handle
from warfence_jax.tokens import Promise
from warfence_jax.tools.cutting.part import Part, Values


class Issued:
    """One launch of a cut function on a lane."""

    def __init__(self, launch: int, lane: JaxLane, known: Values, tables: Tables | None) -> None:
        if tables is None and any(isinstance(a, Version) for a in known.values()):
            raise InputError(
                f"launch {launch}: an argument is a version of a table; pass the tables too, which note who reads it"
            )
        self.launch = launch
        self._lane, self._known, self._tables = lane, known, tables
        self._last: Promise | None = None
        self._results: list[Any] = []

    def result(self) -> Any:
        """What the function returns, as arrays that may still be computed. Blocks until all was dispatched.

        StageError, or another error of warfence, when a part of this launch or of one before it failed.
        """
        if self._last is not None:
            self._last.await_dispatch()
        if not self._results:
            self._lane.check()
        return self._results[0]

    def issue(self, parts: Sequence[Part], result: Callable[[Values], Any]) -> list[Promise]:
        """Enqueue the parts; returns their tokens."""
        tokens = []
        for part in parts:
            finish = result if part is parts[-1] else None
            run = partial(self._dispatch, part, finish)
            try:
                token = self._last = self._lane.enqueue(part.device, run, blocking=part.calls_back)
            except KeyError as error:
                raise InputError(
                    f"launch {self.launch}: the {part.label} runs on {part.device}, which lane '{self._lane.name}' does not "
                    f"serve; cut for a device of the lane's backend"
                ) from error
            if self._tables is not None:
                for version in self._versions(part):
                    self._tables.taken(version, token)
            tokens.append(token)
        return tokens

    def _versions(self, part: Part) -> list[Version]:
        return [self._known[v] for v in part.shared if isinstance(self._known[v], Version)]

    # -- on the lane's thread

    def _dispatch(self, part: Part, finish: Callable[[Values], Any] | None, order: Array, wait: Array) -> Array:
        try:
            known = {v: a.handle if isinstance(a, Version) else a for v, a in self._known.items()}
            arguments = part.arguments(known)
            if part.calls_back:
                # A program with a callback runs in the thread that dispatches it only when nothing is left to wait for.
                jax.block_until_ready(arguments)
            given, token = part.dispatch(arguments, order, wait)
        except WarfenceError:
            raise
        except Exception as error:
            dead = [v for v in self._versions(part) if v.dead()]
            if dead and self._tables is not None:
                self._tables.refused += 1
                raise dead_handle(dead[0], self.launch, part.label) from error
            raise StageError(self.launch, part.label, error) from error
        self._known |= given
        if finish is not None:
            self._results.append(finish(self._known))
            self._known = {}
        return token
