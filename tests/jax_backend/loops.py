"""A decoder layer as loops over single tokens and single heads, in float64: what kernels are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from warfence.host.rope import plain

from .run_op import normal

D, HEADS, KV_HEADS, SIZE, FFN, THETA, EPS = 8, 4, 2, 4, 12, 100.0, 1e-5
SIZES = {"heads": HEADS, "kv_heads": KV_HEADS, "head_dim": SIZE, "rope": plain(SIZE, THETA), "eps": EPS}

Weights = Mapping[str, np.ndarray]
KV = tuple[np.ndarray, np.ndarray]  # key and value [kv_heads, size] of one token


def layer_weights(name: str, seed: int) -> dict[str, np.ndarray]:
    """Random weights of one layer, by their full names."""
    shapes = {
        "wq": (D, HEADS * SIZE), "wk": (D, KV_HEADS * SIZE), "wv": (D, KV_HEADS * SIZE), "wo": (HEADS * SIZE, D),
        "w_gate": (D, FFN), "w_up": (D, FFN), "w_down": (FFN, D),
    }  # fmt: skip
    made = {f"{name}.{n}": normal(seed + i, *s, scale=s[0] ** -0.5) for i, (n, s) in enumerate(shapes.items())}
    norms = {f"{name}.{n}": 1 + normal(seed + 50 + i, D, scale=0.1) for i, n in enumerate(("attn_norm", "mlp_norm"))}
    return {**made, **norms}


def norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean() + EPS) * weight


def turn(vector: np.ndarray, position: int) -> np.ndarray:
    """Rope of one head: element i is turned with element i + size / 2."""
    half = len(vector) // 2
    out = np.empty(len(vector))
    for i in range(half):
        angle = position * THETA ** (-2 * i / len(vector))
        out[i] = vector[i] * np.cos(angle) - vector[i + half] * np.sin(angle)
        out[i + half] = vector[i + half] * np.cos(angle) + vector[i] * np.sin(angle)
    return out


def key_value(w: Weights, name: str, x: np.ndarray, position: int) -> KV:
    """Of one token, from its normed input."""
    key, value = ((x @ w[f"{name}.{m}"]).reshape(KV_HEADS, SIZE) for m in ("wk", "wv"))
    return np.stack([turn(k, position) for k in key]), value


def layer(w: Weights, name: str, hidden: np.ndarray, position: int, seen: Sequence[KV]) -> np.ndarray:
    """One token through the layer, over the keys and values that it sees (its own among them)."""
    query = (norm(hidden, w[f"{name}.attn_norm"]) @ w[f"{name}.wq"]).reshape(HEADS, SIZE)
    mixed = []
    for head in range(HEADS):
        turned, group = turn(query[head], position), head // (HEADS // KV_HEADS)
        scores = np.array([turned @ key[group] for key, _ in seen]) / np.sqrt(SIZE)
        weight = np.exp(scores - scores.max())
        mixed.append(sum(a * value[group] for a, (_, value) in zip(weight / weight.sum(), seen, strict=True)))
    hidden = hidden + np.concatenate(mixed) @ w[f"{name}.wo"]
    x = norm(hidden, w[f"{name}.mlp_norm"])
    gate = x @ w[f"{name}.w_gate"]
    return hidden + (gate / (1 + np.exp(-gate)) * (x @ w[f"{name}.w_up"])) @ w[f"{name}.w_down"]


def own(w: Weights, name: str, hidden: np.ndarray, position: int) -> KV:
    """Key and value of a token of the layer itself."""
    return key_value(w, name, norm(hidden, w[f"{name}.attn_norm"]), position)
