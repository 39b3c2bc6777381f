"""By hand: the trained drafts in plain numpy against torch. ``python training/drafts/crosscheck.py RUN [RUN ...]``

A second, plainly written implementation of what a server computes: one block, one chain, loops over positions. It must
agree with the training modules, which compute many blocks and chains at once. Float32 on both sides, the weights as stored.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from target import load_target
from train import DRAFTS, load_draft

from warfence.serve.model import load_model
from warfence.serve.model.reference import ReferenceModel, rope_tables
from warfence.serve.model.safetensors_file import read_safetensors

F32Array = NDArray[np.float32]
Weights = dict[str, F32Array]
TOLERANCE = 1e-3
TEXT = "And it came to pass in the evening, that a stranger came unto the gate of the city, and the king lifted up"

MODEL = load_model()
CONFIG = MODEL.config
COS, SIN = rope_tables(CONFIG)
EMBED: F32Array = MODEL.weights["embed"]


class Tapped(ReferenceModel):
    """The numpy reference, which also gives the hidden states after each layer."""

    def states(self, ids: list[int]) -> list[F32Array]:
        """[layers] of [len(ids), hidden], before the final norm."""
        x, w, cache, result = EMBED[ids], self.weights, self._empty_cache(), []
        for index in range(self.config.layers):
            x = x + self._attention(index, norm(x, w[f"layer.{index}.attn_norm"]), cache)
            x = swiglu(x, w, f"layer.{index}")
            result.append(x)
        return result


def norm(x: F32Array, weight: F32Array) -> F32Array:
    """RMS norm over the last axis."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + CONFIG.norm_eps) * weight


def rope(x: F32Array, position: int) -> F32Array:
    """Rotate [heads * head_dim] at one position: [heads, head_dim]."""
    x = x.reshape(-1, CONFIG.head_dim)
    first, second = np.split(x, 2, axis=-1)
    return x * COS[position] + np.concatenate([-second, first], axis=-1) * SIN[position]


def swiglu(x: F32Array, w: Weights, layer: str) -> F32Array:
    """The residual second half of a layer."""
    y = norm(x, w[f"{layer}.mlp_norm"])
    gate = y @ w[f"{layer}.w_gate"]
    return x + (gate / (1 + np.exp(-gate)) * (y @ w[f"{layer}.w_up"])) @ w[f"{layer}.w_down"]


def key_value(y: F32Array, w: Weights, layer: str, position: int) -> tuple[F32Array, F32Array]:
    """The key and the value of one position, [kv_heads, head_dim] each."""
    return rope(y @ w[f"{layer}.wk"], position), (y @ w[f"{layer}.wv"]).reshape(-1, CONFIG.head_dim)


def attend(
    x: F32Array, y: F32Array, seen: list[tuple[F32Array, F32Array]], w: Weights, layer: str, at: int
) -> F32Array:
    """One row of a layer: ``x`` [hidden], normed as ``y``, at position ``at``, over the keys and values ``seen``."""
    query, group = rope(y @ w[f"{layer}.wq"], at), CONFIG.heads // CONFIG.kv_heads
    mixed = []
    for head in range(CONFIG.heads):
        keys, values = (np.stack([pair[part][head // group] for pair in seen]) for part in (0, 1))
        scores = keys @ query[head] * np.float32(CONFIG.head_dim**-0.5)
        weight = np.exp(scores - scores.max())
        mixed.append(weight / weight.sum() @ values)
    return swiglu(x + np.concatenate(mixed) @ w[f"{layer}.wo"], w, layer)


def dflash_block(w: Weights, ids: list[int], states: list[F32Array], place: int) -> F32Array:
    """The last hidden of the block at ``place``: [block, hidden]."""
    features = sum(states[index] @ w[f"dflash.tap.{index}"] for index in DRAFTS["dflash"].taps)
    context = norm(features[:place], w["dflash.context_norm"])
    x = np.stack([EMBED[ids[place]]] + [w["dflash.mask"]] * (DRAFTS["dflash"].block - 1))
    for layer in (f"dflash.layer.{index}" for index in range(DRAFTS["dflash"].layers)):
        y = norm(x, w[f"{layer}.attn_norm"])
        seen = [key_value(row, w, layer, position) for position, row in enumerate(context)]
        seen += [key_value(row, w, layer, place + q) for q, row in enumerate(y)]
        x = np.stack([attend(x[q], y[q], seen, w, layer, place + q) for q in range(len(x))])
    return x


def eagle_chain(w: Weights, ids: list[int], hidden: F32Array, place: int, count: int) -> tuple[list[int], F32Array]:
    """``count`` guesses after the token at ``place``, and the chain's outputs [count, hidden]."""
    layer, seen, outputs, guesses = "eagle.layer.0", [], [], []
    for position in range(place + count - 1):
        own = position >= place  # its token is a guess and its hidden state the draft's own
        token = guesses[position - place] if own else ids[position + 1]
        x = np.concatenate([EMBED[token], outputs[-1] if own else hidden[position]]) @ w["eagle.fc"]
        y = norm(x, w[f"{layer}.attn_norm"])
        seen.append(key_value(y, w, layer, position))
        if position >= place - 1:
            outputs.append(attend(x, y, seen, w, layer, position))
            guesses.append(int(np.argmax(norm(outputs[-1], w["eagle.norm"]) @ EMBED.T)))
    return guesses, np.stack(outputs)


def check(run: Path, places: tuple[int, ...]) -> float:
    """The greatest difference between numpy and torch over ``places`` of one sequence."""
    weights = read_safetensors(run / "model.safetensors")
    name = next(iter(weights)).split(".")[0]
    target = load_target("cpu")
    draft = DRAFTS[name](target)
    load_draft(run / "model.safetensors", draft)
    ids = MODEL.tokenizer.encode(TEXT)
    states, worst = Tapped(MODEL).states(ids), 0.0
    for place in places:
        if name == "dflash":
            mine = dflash_block(weights, ids, states, place)
            tokens = torch.tensor([ids])
            theirs = draft(tokens, target.states(tokens), torch.tensor([[1, place, len(ids) - 1]]))[0, 1]
        else:
            guesses, mine = eagle_chain(weights, ids, states[-1], place, draft.block - 1)
            # Torch reads the guesses as if they were the text; what the target makes of them must not matter.
            tokens = torch.tensor([[*ids[: place + 1], *guesses, 0]])
            steps = draft(tokens, target.states(tokens)[-1], draft.block - 1)
            theirs = torch.stack([output[0, place - 1 + step] for step, output in enumerate(steps)])
        worst = max(worst, float(np.abs(mine - theirs.detach().numpy()).max()))
    return worst


def main() -> None:
    """Check each run, and end with an error where one differs."""
    parser = argparse.ArgumentParser(description="Compare trained drafts with a plain numpy implementation.")
    parser.add_argument("runs", type=Path, nargs="+", help="folders with a model.safetensors of a draft")
    for run in parser.parse_args().runs:
        worst = check(run, places=(1, 2, 9, 25))
        print(f"{run}: max abs difference {worst:.2e}")
        if not worst < TOLERANCE:
            raise SystemExit(f"{run}: numpy and torch differ by {worst:.2e}; allowed is {TOLERANCE:.0e}")


if __name__ == "__main__":
    main()
