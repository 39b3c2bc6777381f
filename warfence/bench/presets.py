"""Forwards of several lengths: decoders of random weights. All float32, as the kernels of both packages are."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from warfence.core.errors import InputError
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.weights import Weights, shapes

CONTEXT, WINDOW = 32, 16  # columns of a table row, kept small so that a million rows fit; keys of a sliding layer
BLOCK = 65_521  # random numbers that large weights repeat; a prime, so that rows begin at different places
FREE_FORM = re.compile(r"([1-9]\d{0,2})x([1-9]\d{0,4})")


@dataclass(frozen=True, slots=True)
class Preset:
    """Sizes of a decoder. `about`: what it stands for."""

    layers: int
    hidden: int
    ffn: int
    vocab: int
    about: str

    def config(self, name: str) -> ModelConfig:
        """Every other layer slides, so that both tables are read. Heads of 32, or of 64 where there is width."""
        head_dim = 64 if self.hidden >= 512 else 32 if self.hidden % 32 == 0 else self.hidden
        heads = self.hidden // head_dim
        kv_heads = next(heads // group for group in (4, 3, 2, 1) if heads % group == 0)
        return ModelConfig(
            name=name, vocab=self.vocab, hidden=self.hidden, layers=self.layers, heads=heads, kv_heads=kv_heads,
            head_dim=head_dim, ffn=self.ffn, sliding=tuple(i % 2 == 1 or self.layers == 1 for i in range(self.layers)),
            window=WINDOW, context=CONTEXT, rope_theta=10000.0, norm_eps=1e-5, eos_ids=(), bos_id=None,
        )  # fmt: skip


PRESETS: dict[str, Preset] = {
    "tiny": Preset(2, 64, 128, 256, "for a quick run on a CPU"),
    "demo": Preset(6, 192, 512, 1024, "the sizes of the shipped model"),
    "short": Preset(1, 512, 1024, 1024, "about 0.3 ms on an H200"),
    "medium": Preset(5, 512, 1024, 1024, "about 1.3 ms on an H200"),
    "long": Preset(40, 512, 1024, 1024, "about 10 ms on an H200"),
    "large": Preset(20, 2048, 5632, 32_000, "about 1 B parameters, 4 GB as float32"),
}
ON_CPU, ON_DEVICE, LONG = ("tiny", "demo"), ("short", "medium"), ("long",)


def usual(device: str) -> tuple[str, ...]:
    """The forwards that are measured on a device where none is named, the shortest first."""
    return ON_CPU if device == "cpu" else ON_DEVICE


def all_usual(device: str) -> tuple[str, ...]:
    """The same for the axis of forwards, with a long one beside them where the device is no CPU."""
    return ON_CPU if device == "cpu" else ON_DEVICE + LONG


def find(name: str) -> Preset:
    """A preset by name, or "LAYERSxHIDDEN", such as 12x512. InputError says what there is."""
    if name in PRESETS:
        return PRESETS[name]
    free = FREE_FORM.fullmatch(name)
    if free is None or int(free[2]) % 32:
        raise InputError(
            f"unknown forward '{name}'; choose one of: {', '.join(PRESETS)}, or LAYERSxHIDDEN with hidden a multiple of "
            f"32, such as 12x512"
        )
    layers, hidden = int(free[1]), int(free[2])
    return Preset(layers, hidden, 2 * hidden, 1024, "as asked for")


def tiled_weights(config: ModelConfig, seed: int = 0) -> Weights:
    """Random float32 weights out of one small block, so that a billion of them take seconds. The same on every machine."""
    block = np.random.Generator(np.random.Philox(seed)).standard_normal(BLOCK, dtype=np.float32)
    weights: Weights = {}
    for i, (name, shape) in enumerate(shapes(config).items()):
        if len(shape) == 1:
            weights[name] = np.ones(shape, np.float32)
            continue
        # The head is steep, so that margins are wide and a wrong read shows in them, however many layers even it out.
        scale = np.float32(1.0 if name == "embed" else (8.0 if name == "head" else 1.0) * shape[0] ** -0.5)
        weights[name] = np.resize(np.roll(block, 997 * i) * scale, shape)
    return weights
