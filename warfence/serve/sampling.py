"""From logits to a token: one rule that the numpy reference, the torch and the JAX kernels follow.

Greedy (``temperature == 0``): the lowest index of the greatest logit. ``margin`` is the greatest minus the second
greatest logit (infinite for a vocabulary of one).

Otherwise, all in float32, with ``u`` from ``uniform``:

1. ``p = softmax(logits / temperature)``, computed as ``e / sum(e)`` with
   ``e = exp((logits - max(logits)) / temperature)``.
2. Sort ``p`` descending, stable: of equal values the lower token id stands first. ``c = cumsum(sorted p)``.
3. Keep position ``k`` iff ``c[k-1] < top_p`` (``c[-1]`` is 0); the first is always kept. ``mass = c[last kept]``.
4. ``t = u * mass``. The pick is the first kept ``k`` with ``c[k] > t``, at most the last kept.
5. ``margin = min(t - c[k-1], c[k] - t)``, at least 0: the distance of ``t`` to the nearest edge of the interval.

A margin near rounding error says that another order of summation may pick the neighbour. It says nothing of two logits
that rounding lets change places in the sort, nor of a position that it moves over the ``top_p`` cut.

``uniform`` is Philox-4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a
function of (seed, request, position) without state, so the order in which requests run cannot change their text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warfence.core.errors import InputError

_WORD = 0xFFFFFFFF
_LONG = 0xFFFFFFFFFFFFFFFF
NEAR_TIE = 1e-4
"""Margins below this may fall differently by rounding alone: two best logits, or a draw and the edge of its interval."""
MIN_TEMPERATURE = 1e-3
"""The smallest temperature that is not greedy: logits divided by less can overflow float32."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the tokens of one request are chosen.

    ``temperature``: 0 (greedy) or ``MIN_TEMPERATURE`` and more. ``top_p``: in (0, 1]. ``seed``: in [0, 2**64).
    Raises ``InputError`` outside of these.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.temperature != 0.0 and not MIN_TEMPERATURE <= self.temperature < math.inf:
            raise InputError(f"temperature is {self.temperature}; allowed are 0 (greedy) and {MIN_TEMPERATURE} or more")
        if not 0.0 < self.top_p <= 1.0:
            raise InputError(f"top_p is {self.top_p}; allowed is more than 0 up to 1")
        if not 0 <= self.seed <= _LONG:
            raise InputError(f"seed is {self.seed}; allowed is 0 to 2**64 - 1")


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox-4x32 with ten rounds: four 32-bit words from a 128-bit counter and a 64-bit key (words low to high)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        left, right = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right & _WORD, (left >> 32) ^ c3 ^ k1, left & _WORD
        k0, k1 = (k0 + 0x9E3779B9) & _WORD, (k1 + 0xBB67AE85) & _WORD
    return c0, c1, c2, c3


def uniform(seed: int, request: int, position: int) -> float:
    """The number in [0, 1) for the token at 0-based ``position`` of the sequence of ``request``.

    A multiple of 2**-24, so that it is the same in float32. Counter: (position low, high, request low, high); key:
    (seed low, high); the first output word's upper 24 bits are used. All arguments are in [0, 2**64).
    """
    counter = (position & _WORD, position >> 32 & _WORD, request & _WORD, request >> 32 & _WORD)
    return (philox(counter, (seed & _WORD, seed >> 32 & _WORD))[0] >> 8) * 2.0**-24


def choose(logits: NDArray[np.float32], params: SamplingParams, u: float) -> tuple[int, float]:
    """Choose a token from ``logits`` (float32, [vocab]) by the module's rule. Returns (token, margin)."""
    if params.temperature == 0.0:
        token = int(np.argmax(logits))
        others = np.delete(logits, token)
        return token, float(logits[token] - others.max()) if others.size else math.inf
    weight = np.exp((logits - logits.max()) / np.float32(params.temperature))
    probability = weight / weight.sum()
    order = np.argsort(-probability, kind="stable")
    upper = np.cumsum(probability[order], dtype=np.float32)
    lower = np.concatenate([np.zeros(1, np.float32), upper[:-1]])
    kept = max(int(np.count_nonzero(lower < np.float32(params.top_p))), 1)
    target = np.float32(u) * upper[kept - 1]
    pick = min(int(np.searchsorted(upper[:kept], target, side="right")), kept - 1)
    margin = min(float(target - lower[pick]), float(upper[pick] - target))
    return int(order[pick]), max(margin, 0.0)
