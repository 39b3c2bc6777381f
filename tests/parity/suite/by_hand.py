"""What kernels are compared with: one op on its own, and decoder layers in float64 without pages, rows or batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warfence.host.stage_calls import StageEnv
from warfence.parity.kernels import KERNELS

Pair = tuple[np.ndarray, np.ndarray]  # keys and values [positions, kv_heads, size]
Sees = Callable[[int, int], bool]  # (query, key), as positions: whether the one sees the other


def i32(values: object) -> np.ndarray:
    return np.asarray(values, np.int32)


def f32(values: object) -> np.ndarray:
    return np.asarray(values, np.float32)


def close(seen: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(seen, expected, rtol=1e-4, atol=1e-4)


def run(
    op: str, known: Mapping[str, Any], *, state: tuple[str, ...] = (), attrs: Mapping[str, Any] | None = None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(given, state afterwards). Whatever is not state cannot be written; what is given is no view, of 32 bits."""
    env = {name: np.array(value) for name, value in known.items()}
    for name, array in env.items():
        array.flags.writeable = name in state
    given = KERNELS[op](StageEnv(op, env), attrs or {})
    for name, value in given.items():
        assert value.dtype in (np.int32, np.float32), f"{name} is of {value.dtype}"
        assert not any(np.shares_memory(value, array) for array in env.values()), f"{name} is a view"
    return given, {name: env[name] for name in state}


@dataclass(frozen=True)
class Dense:
    """Decoder layers over one sequence. Sizes are those of a ModelConfig."""

    config: Any
    weights: Mapping[str, np.ndarray]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        x = np.asarray(x, np.float64)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config.norm_eps) * self.weights[name]

    def turn(self, x: np.ndarray, positions: Sequence[int]) -> np.ndarray:
        """x [positions, heads, size]: the pairs (i, i + size/2) turned by position * theta ** (-2i / size)."""
        turned, half = np.empty_like(x), x.shape[-1] // 2
        for n, position in enumerate(positions):
            for i in range(half):
                angle = position * self.config.rope_theta ** (-2 * i / x.shape[-1])
                a, b = x[n, :, i], x[n, :, i + half]
                turned[n, :, i] = a * np.cos(angle) - b * np.sin(angle)
                turned[n, :, i + half] = b * np.cos(angle) + a * np.sin(angle)
        return turned

    def pairs(self, x: np.ndarray, name: str, positions: Sequence[int]) -> Pair:
        """Keys and values of (already normed) x."""
        shape = (len(x), self.config.kv_heads, self.config.head_dim)
        keys = self.turn((x @ self.weights[f"{name}.wk"]).reshape(shape), positions)
        return keys, (x @ self.weights[f"{name}.wv"]).reshape(shape)

    def layer(
        self, name: str, x: np.ndarray, positions: Sequence[int], sees: Sees, past: Pair | None = None
    ) -> np.ndarray:
        """One layer; `past`: pairs of positions 0, 1, .. that come before the own ones."""
        c, w = self.config, self.weights
        x = np.asarray(x, np.float64)
        y = self.norm(x, f"{name}.attn_norm")
        keys, values = self.pairs(y, name, positions)
        at = list(positions)
        if past is not None:
            at = [*range(len(past[0])), *at]
            keys, values = np.concatenate([past[0], keys]), np.concatenate([past[1], values])
        query = self.turn((y @ w[f"{name}.wq"]).reshape(len(x), c.heads, c.head_dim), positions)
        mixed = np.zeros((len(x), c.heads, c.head_dim))
        for n, position in enumerate(positions):
            seen = [k for k, key in enumerate(at) if sees(position, key)]
            for h in range(c.heads):
                kv = h // (c.heads // c.kv_heads)
                weight = np.exp([query[n, h] @ keys[k, kv] / np.sqrt(c.head_dim) for k in seen])
                mixed[n, h] = weight / weight.sum() @ values[seen, kv]
        x = x + mixed.reshape(len(x), -1) @ w[f"{name}.wo"]
        y = self.norm(x, f"{name}.mlp_norm")
        gate = y @ w[f"{name}.w_gate"]
        return x + (gate / (1 + np.exp(-gate)) * (y @ w[f"{name}.w_up"])) @ w[f"{name}.w_down"]

    def target(self, ids: Sequence[int]) -> list[np.ndarray]:
        """The residual stream after each layer of the target, [len(ids), hidden] each."""
        x, outs, window = self.weights["embed"][list(ids)].astype(np.float64), [], self.config.window
        for i, sliding in enumerate(self.config.sliding):
            sees = windowed(window) if sliding else causal
            x = self.layer(f"layer.{i}", x, range(len(ids)), sees)
            outs.append(x)
        return outs


def causal(query: int, key: int) -> bool:
    return key <= query


def windowed(window: int) -> Sees:
    return lambda query, key: query - window < key <= query


def everything(query: int, key: int) -> bool:
    return True
