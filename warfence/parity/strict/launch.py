"""One launch of a forward: its batch, its private workspace, and what may not be done to either."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from warfence.core.batch import Batch
from warfence.core.errors import FenceError, InputError
from warfence.core.program import ForwardProgram, Stage
from warfence.host.stage_calls import StageCall
from warfence.parity.kernels import Array


class Launch:
    """The batch is read in place, as late as its stages run: the interface lets a lane do that until the launch is over."""

    def __init__(self, program: ForwardProgram, batch: Batch, number: int) -> None:
        layout, words = program.layout, batch.words
        if batch.layout != layout or words.shape != (layout.words,) or words.dtype != np.int32:
            raise InputError(
                f"launch {number}: a batch of {batch.layout.rows}x{batch.layout.queries} ({words.dtype}"
                f"{list(words.shape)}) for '{program.name}', which takes {layout.rows}x{layout.queries}: pack it with the "
                f"program's own layout"
            )
        self.number = number
        self._program, self._batch, self._as_packed = program, batch, words.copy()
        self._workspace = {name: frozen(batch.view(name)) for name in layout.fields}

    def run(self, stage: Stage, call: StageCall[Array], fixed: Mapping[str, Array]) -> None:
        """Run one stage over the workspace."""
        self.check_batch()
        for name, value in call(self._workspace).items():
            owner = next((n for n, array in fixed.items() if np.may_share_memory(value, array)), None)
            if owner is not None:
                raise FenceError(
                    f"launch {self.number}, stage '{stage.name}': '{name}' is a view of '{owner}'; give a copy, or the "
                    f"forward goes on reading what others write"
                )
            # Values may be taken, not changed: the next stage sees them as they were given.
            self._workspace[name] = frozen(value)

    def outputs(self) -> dict[str, Array]:
        """Copies for the host. The launch is over: nobody may look at its workspace any more, so it is poisoned."""
        self.check_batch()
        copies = {name: np.array(self._workspace[name]) for name in self._program.outputs}
        for value in self._workspace.values():
            if not np.may_share_memory(value, self._batch.words):
                poison(value)
        self._workspace.clear()
        return copies

    def check_batch(self) -> None:
        """FenceError when somebody wrote into the packed words while the launch may still read them (law 12)."""
        if not np.array_equal(self._batch.words, self._as_packed):
            at = int(np.flatnonzero(self._batch.words != self._as_packed)[0])
            fields = self._program.layout.fields.items()
            name = next(name for name, field in fields if field.offset <= at < field.offset + field.size)
            raise FenceError(
                f"launch {self.number}: the batch was changed after it was packed (field '{name}'); the forward may read "
                f"it until the launch is over, so pack a fresh one for each launch"
            )


def frozen(array: Array) -> Array:
    """A view that refuses to be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def poison(array: Array) -> None:
    """Make whatever reads these values from now on fail or be seen: NaN, or the least integer."""
    while isinstance(array.base, np.ndarray):  # a frozen view refuses; its owner is the kernel's own array
        array = array.base
    if array.flags.writeable and array.dtype.kind in "fi":
        array[...] = np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).min
