"""Holds what a trace found against the function itself: it runs again with the tables overwritten behind the boundary.

The overwritten run is done by another thread, as a lane's would: what the function takes from its thread shows there too.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from warfence.core.errors import InputError
from warfence.parity.boundary import Boundary, Operation
from warfence.parity.boundary.find import ends
from warfence_torch.tools.accesses import tensors
from warfence_torch.tools.other_values import bits, wrong_values
from warfence_torch.tools.planting.trace import END, Pass, Subject

CHECKED = "checked: overwriting the tables behind the marker changes no result"
RANDOM = "not checked by overwriting: two clean runs give different results"
HIDDEN = (
    "something reads that the trace does not see: overwriting the tables {place} changes a result, so the ticket is out when "
    "the whole function is over"
)


def checked(
    subject: Subject, shared: Mapping[str, Tensor], first: Pass, found: Boundary
) -> tuple[Boundary, Any, list[str]]:
    """The boundary, at the end of the function where an overwritten run shows one more read; an output; what to say.

    InputError where the function does something else in another thread.
    """
    runs = _Runs(subject, shared, first, found)
    output, clean = runs.here()
    if runs.wrong is None:
        return found, output, [runs.why]
    spoilt = runs.in_thread(overwritten=True)
    if spoilt == clean:
        return found, output, [CHECKED]
    threaded = runs.in_thread(overwritten=False)
    if threaded == clean:
        place = "before it begins" if found.after is None else f"behind {found.after}"
        end = Operation(found.operations, END, unseen=HIDDEN.format(place=place))
        return ends([end], found.reads, [*found.unseen, end], found.operations), output, []
    if runs.here()[1] != clean:
        return found, output, [RANDOM]
    raise InputError(
        f"the function does something else in another thread, and a lane is one{f' ({runs.failure})' if runs.failure else ''}: "
        f"give it as an argument, or in a context variable, what it takes from its thread (threading.local, autocast)"
    )


class _Runs:
    def __init__(self, subject: Subject, shared: Mapping[str, Tensor], first: Pass, found: Boundary) -> None:
        self._subject, self._first, self._tables = subject, first, shared
        self._after = found.after.position if found.after is not None else None
        self._before = [(t, t.detach().clone()) for t in (*shared.values(), *first.state.values())]
        self.why, self.failure = "", ""
        self.wrong: dict[str, Tensor] | None = None
        try:
            self.wrong = wrong_values(shared, None)
        except InputError as error:
            self.why = f"not checked by overwriting: {error}"

    def here(self) -> tuple[Any, list[bytes]]:
        """A clean run in this thread: its output, and all results bit by bit. The state stays as that run leaves it."""
        self._restore()
        output = Pass(self._subject, self._first.seen).run()
        return output, self._results(output)

    def in_thread(self, overwritten: bool) -> list[bytes] | None:
        """The results of a run in another thread, None where it failed. The state is put back before, and kept behind it."""
        left = [t.detach().clone() for t, _ in self._before]
        self._restore()
        done: list[list[bytes]] = []
        failed: list[Exception] = []

        def behind(position: int) -> None:
            if overwritten and position == self._after:
                self._overwrite()

        def run() -> None:
            try:
                if overwritten and self._after is None:
                    self._overwrite()
                done.append(self._results(Pass(self._subject, self._first.seen, behind).run()))
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="warfence check")
        thread.start()
        thread.join()
        for (t, _), value in zip(self._before, left, strict=True):
            _put(t, value)
        self.failure = str(failed[0]) if failed else ""
        return done[0] if done else None

    def _results(self, output: Any) -> list[bytes]:
        found = [*tensors(tree_leaves(output)), *self._first.state.values()]
        return [bits(t).numpy(force=True).tobytes() for t in found if not t.is_nested and t.layout is torch.strided]

    def _overwrite(self) -> None:
        for name, table in self._tables.items():
            _put(table, (self.wrong or {})[name])

    def _restore(self) -> None:
        for t, value in self._before:
            _put(t, value)


def _put(t: Tensor, value: Tensor) -> None:
    """Through another handle and without the modes that are on: this is nobody's operation."""
    with torch.utils._python_dispatch._disable_current_modes(), torch.inference_mode():
        t.detach().copy_(value)
