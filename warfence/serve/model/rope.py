"""The rotary embedding that a `config.json` asks for, as numbers (`warfence.host.rope`).

Source of the variants: ``transformers`` 5.x, ``modeling_rope_utils``. Two of them change with the length of a sequence there:
``dynamic`` only beyond the context, where nothing is served, so within it is the plain one; ``longrope`` beyond
``original_max_position_embeddings``, where cached keys would keep the old frequencies, so a longer context is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warfence.core.errors import InputError
from warfence.host.rope import Rope, inverse
from warfence.serve.model.fields import number, whole


@dataclass(frozen=True, slots=True)
class _Given:
    """What a variant may take: the fields, the plain inverse frequencies, their base, and the context."""

    fields: Mapping[str, Any]
    name: str
    inverse: list[float]
    theta: float
    context: int

    def number(self, key: str, default: float | None = None) -> float:
        return number(self.fields, key, self.name, default)

    @property
    def original(self) -> int:
        value = whole(self.fields, "original_max_position_embeddings", self.name, self.context)
        if value < 2:
            raise InputError(f"model '{self.name}': original_max_position_embeddings is {value}; it must be at least 2")
        return value


Scaled = tuple[list[float], float]  # inverse frequencies, and what cosine and sine are multiplied by


def read_rope(raw: Mapping[str, Any], name: str, size: int, context: int) -> tuple[float, Rope | None]:
    """(base, scaled embedding or None) of a ``config.json`` in the old form (``rope_theta``, ``rope_scaling``) or the new one
    (``rope_parameters``). Raises ``InputError`` for a kind that is not served, and for a field that it lacks."""
    given: dict[str, Any] = {}
    for key in ("rope_scaling", "rope_parameters"):
        value = raw.get(key)
        if value is None:
            continue
        if not isinstance(value, Mapping):
            raise InputError(f"model '{name}': {key} is {value!r}; allowed is an object or null")
        given = {**value}
    if any(isinstance(part, Mapping) for part in given.values()):
        raise InputError(
            f"model '{name}': rope_parameters is {given!r}; allowed is one rotary embedding for all layers"
        )
    theta = number(given if "rope_theta" in given else raw, "rope_theta", name, 10000.0)
    kind = given.get("rope_type", given.get("type", "default"))
    for place in (given, raw):
        if (part := place.get("partial_rotary_factor")) not in (None, 1, 1.0):
            raise InputError(f"model '{name}': partial_rotary_factor is {part!r}; allowed is 1.0: all of a head turns")
    if kind == "default":
        return theta, None
    if kind not in _KINDS:
        allowed = ", ".join(("default", *_KINDS))
        raise InputError(f"model '{name}': rope_type is {kind!r}; allowed are {allowed}")
    if size % 2:
        raise InputError(f"model '{name}': head_dim is {size}; rotary embedding needs an even number")
    if (
        raw.get("original_max_position_embeddings") is not None
    ):  # as Phi-3 has it; it goes before the field of the object
        given["original_max_position_embeddings"] = raw["original_max_position_embeddings"]
    try:
        scaled, scale = _KINDS[kind](_Given(given, name, inverse(size, theta), theta, context))
    except ArithmeticError as cause:
        raise InputError(
            f"model '{name}': the numbers of rope_type {kind!r} do not fit each other: {given!r}"
        ) from cause
    return theta, Rope.of(scaled, scale, kind)


def _linear(given: _Given) -> Scaled:
    factor = given.number("factor")
    return [f / factor for f in given.inverse], 1.0


def _dynamic(given: _Given) -> Scaled:
    given.number("factor")
    return given.inverse, 1.0


def _llama3(given: _Given) -> Scaled:
    factor, low, high = (given.number(key) for key in ("factor", "low_freq_factor", "high_freq_factor"))
    original = given.original

    def stretched(f: float) -> float:
        wavelength = 2 * math.pi / f
        if wavelength < original / high:
            return f
        if wavelength > original / low:
            return f / factor
        smooth = (original / wavelength - low) / (high - low)
        return (1 - smooth) * f / factor + smooth * f

    return [stretched(f) for f in given.inverse], 1.0


def _yarn(given: _Given) -> Scaled:
    original = given.original
    factor = given.number("factor", given.context / original)
    size = 2 * len(given.inverse)
    usual = _mscale(factor, 1)
    if given.fields.get("mscale") and given.fields.get("mscale_all_dim"):
        usual = _mscale(factor, given.number("mscale")) / _mscale(factor, given.number("mscale_all_dim"))
    scale = given.number("attention_factor", usual)

    def pair(turns: float) -> float:  # the pair that turns that often within the original context
        return size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(given.theta))

    low, high = pair(given.number("beta_fast", 32)), pair(given.number("beta_slow", 1))
    if given.fields.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    high = high + 0.001 if low == high else high
    ramp = [min(max((i - low) / (high - low), 0.0), 1.0) for i in range(len(given.inverse))]
    return [f / factor * r + f * (1 - r) for f, r in zip(given.inverse, ramp, strict=True)], scale


def _mscale(factor: float, weight: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _longrope(given: _Given) -> Scaled:
    original = given.original
    if given.context > original:
        raise InputError(
            f"model '{given.name}': longrope takes other frequencies beyond {original} positions, while cached keys keep the"
            f" first ones, and the context is {given.context}; set max_position_embeddings to {original} to serve up to there"
        )
    short = given.fields.get("short_factor")
    if not isinstance(short, list) or len(short) != len(given.inverse):
        raise InputError(
            f"model '{given.name}': short_factor must be a list of {len(given.inverse)} numbers, one for each pair"
        )
    each = [number({"short_factor": value}, "short_factor", given.name) for value in short]
    factor = given.number("factor", given.context / original)
    usual = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    scale = given.number("attention_factor", usual)
    return [f / s for f, s in zip(given.inverse, each, strict=True)], scale


_KINDS: dict[str, Callable[[_Given], Scaled]] = {
    "linear": _linear, "dynamic": _dynamic, "llama3": _llama3, "yarn": _yarn, "longrope": _longrope,
}  # fmt: skip
