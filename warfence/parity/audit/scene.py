"""What a last read is measured with: two kinds of table values, and launches that make different cells lead to different
content.

A read shows only if something else lies behind the wrong value, and a write only if something else lay there before. Of
the small model's slots, row 1 has the first CONTEXT; what is stirred lies behind them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Int32

from warfence.core.batch import Batch, BatchRow, pack
from warfence.core.modes import ForwardMode
from warfence.core.program import REQ_TO_TOKEN
from warfence.parity.cells import Cell
from warfence.parity.rig import CHUNK, CONTEXT, SPARE_ROW, batch_of, layout

SLOTS = SPARE_ROW * CONTEXT
SHIFT = 3  # positions by which the smudging launch is shifted
STIRRED = 40  # slots behind row 1's that get content; the wrong values of the first positions lie in there
SEED = 0

Values = dict[str, Int32[np.ndarray, " cells"]]


class Scene:
    """The launches and table values of one cell with one row. `tables`: the shared tables, whose values are KV slots."""

    def __init__(self, cell: Cell, tables: Mapping[str, Int32[np.ndarray, "rows cols"]]) -> None:
        self._cell = cell
        self.right: Values = {name: np.array(table).reshape(-1) for name, table in tables.items()}
        self.batch = batch_of(cell)
        prefix = CHUNK + SHIFT if cell.mode.later_chunk else SHIFT
        own = tuple(int(s) for s in self.batch.view("out_cache_loc")[0])
        self.smudge = self.batch if self._idle else self._launch(prefix, (5,) * len(own), own)

    @property
    def _idle(self) -> bool:
        return self._cell.mode.mode is ForwardMode.IDLE

    def smudged(self) -> Values:
        """Tables under which the smudging launch, SHIFT positions on, writes where the batch will write."""
        return self._moved(-SHIFT)

    def wrong(self, n: int) -> Values:
        """The n-th set of wrong values: every cell names another slot, mostly one that `stir` has filled."""
        return self._moved(CONTEXT + 7 * n)

    def stir(self, tokens: list[int]) -> Iterator[tuple[Values, Batch]]:
        """Launches that fill the slots behind row 1's with the KV of these tokens, and the tables to run them under.

        Row 1 is moved, so that a forward that looks its slots up writes there too; the sliding map is the right one.
        """
        if self._idle:
            return
        rng, queries = np.random.default_rng(SEED), layout(self._cell).queries
        first = int(self.right[REQ_TO_TOKEN][CONTEXT + CHUNK])
        for slot in range(CONTEXT + 1, CONTEXT + STIRRED):
            chosen = tuple(int(t) for t in rng.choice(tokens, queries))
            moved = self.right | {REQ_TO_TOKEN: self._moved(slot - first)[REQ_TO_TOKEN]}
            yield moved, self._launch(CHUNK, chosen, (slot, *(0,) * (queries - 1)))

    def counted(self, state: np.ndarray) -> np.ndarray:
        """What counts of a private array: all but row or slot 0. Padding writes there, several at a time, in any order.

        A launch of nothing but padding, of one token, is judged by just that.
        """
        if self._idle:
            return state
        pool = state.ndim > 2 and state.shape[0] == 2  # keys and values by slot
        return state[:, 1:] if pool else state[1:]

    def _launch(self, prefix: int, tokens: tuple[int, ...], slots: tuple[int, ...]) -> Batch:
        return pack(layout(self._cell), [BatchRow(1, prefix, tokens, slots, False, 0.0, 1.0, ())])

    def _moved(self, by: int) -> Values:
        """Every value moved on, around the slots. Where padding points, 0, it stays, but for a launch of nothing else:
        several tokens of padding would write one slot in any order."""
        moved = {name: (1 + (row - 1 + by) % (SLOTS - 1)).astype(np.int32) for name, row in self.right.items()}
        return (
            moved if self._idle else {n: np.where(self.right[n] > 0, m, 0).astype(np.int32) for n, m in moved.items()}
        )
