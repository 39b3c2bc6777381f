"""A draft that knows the text: kernels that propose what the target will say, up to a place that changes from step to step.

A random draft is hardly ever right, so by itself it tests rejection only. This one brings blocks accepted to any length. It
learns what a row holds from the stages of the program, as a device would, and nothing from the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warfence.parity.kernels import KERNELS, Kernel

VOCAB = 97


class Oracle:
    """texts: prompt and continuation of every request that will come."""

    def __init__(self, texts: Sequence[Sequence[int]]) -> None:
        self._texts = [tuple(text) for text in texts]
        self._history: dict[int, dict[int, int]] = {}  # row -> token of each position
        self._stands: dict[int, tuple[int, int]] = {}  # row -> (positions in the cache, last token)
        self._rows: list[int] = []  # of the launch whose stages run
        self._positions: list[list[int]] = []

    def kernels(self) -> dict[str, Kernel]:
        own: dict[str, Kernel] = {
            "stage_inputs": self._inputs, "resolve": self._inputs_late, "commit": self._commit,
            "draft_propose": self._dflash, "eagle_inputs": self._eagle_inputs, "eagle_propose": self._eagle,
            "ngram_lookup": self._ngram,
        }  # fmt: skip
        return {**KERNELS, **own}

    def propose(self, known: tuple[int, ...], count: int) -> list[int]:
        """The first (len(known) + its last token) % (count + 1) proposals are right, and the one behind them is wrong."""
        for text in self._texts:
            following = text[len(known) : len(known) + count]
            if following and text[: len(known)] == known:
                right = (len(known) + known[-1]) % (count + 1)
                return [
                    *following[:right],
                    *((t + 1) % VOCAB for t in following[right:]),
                    *[0] * (count - len(following)),
                ]
        return [0] * count

    def _begin(self, env: Any, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self._rows, self._positions = env["req_pool_indices"].tolist(), given["positions"].tolist()
        self._note(given["tokens"])
        return given

    def _note(self, tokens: np.ndarray) -> None:
        for row, positions, own in zip(self._rows, self._positions, tokens.tolist(), strict=True):
            self._history.setdefault(row, {}).update(zip(positions, own, strict=True))

    def _inputs(self, env: Any, attrs: Any) -> dict[str, np.ndarray]:
        return self._begin(env, KERNELS["stage_inputs"](env, attrs))

    def _inputs_late(self, env: Any, attrs: Any) -> dict[str, np.ndarray]:
        given = self._begin(env, KERNELS["resolve"](env, attrs))
        for row, n, tokens in zip(self._rows, given["prefix_lens"].tolist(), given["tokens"].tolist(), strict=True):
            self._stands[row] = (n, tokens[0])
        return given

    def _commit(self, env: Any, attrs: Any) -> dict[str, np.ndarray]:
        given = KERNELS["commit"](env, attrs)
        for row in env["req_pool_indices"].tolist():
            self._stands[row] = (int(env["seq_lens"][row]), int(env["relay"][row]))
        return given

    def _of_rows(self, rows: list[int], count: int) -> np.ndarray:
        made = []
        for row in rows:
            n, last = self._stands[row]
            made.append(self.propose((*(self._history[row][p] for p in range(n)), last) if row else (0,), count))
        return np.array(made, np.int32).reshape(len(rows), count)

    def _ngram(self, env: Any, attrs: Any) -> dict[str, np.ndarray]:
        return {"proposals": self._of_rows(env["req_pool_indices"].tolist(), attrs["count"])}

    def _dflash(self, env: Any, attrs: Any) -> dict[str, np.ndarray]:
        tokens = env["tokens"].copy()
        tokens[:, 1:] = self._of_rows(self._rows, tokens.shape[1] - 1)
        self._note(tokens)
        return {"tokens": tokens}

    def _eagle_inputs(self, env: Any, attrs: Any) -> dict[str, np.ndarray]:
        self._rows = env["req_pool_indices"].tolist()
        return KERNELS["eagle_inputs"](env, attrs)

    def _eagle(self, env: Any, attrs: Any) -> dict[str, np.ndarray]:
        return {"proposals": self._of_rows(self._rows, attrs["count"])}
