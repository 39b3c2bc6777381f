"""Speculative algorithms: capabilities, not names. The policy asks what an algorithm can promise, never its name."""

from __future__ import annotations

from dataclasses import dataclass

from warfence.errors import InputError


@dataclass(frozen=True, slots=True)
class SpecAlgorithm:
    """What a speculative algorithm promises about shared reads. Every promise defaults to False (policy case 12).

    supports_target_verify_read_done: target verify is the last shared reader of the step.
    supports_prefill_read_done: the algorithm brings its prefill reads forward, before the publication point.
    """

    name: str
    supports_target_verify_read_done: bool = False
    supports_prefill_read_done: bool = False
    speculative: bool = True


NO_SPEC = SpecAlgorithm("none", speculative=False)
DFLASH = SpecAlgorithm("dflash", supports_target_verify_read_done=True, supports_prefill_read_done=True)

_REGISTRY: dict[str, SpecAlgorithm] = {a.name: a for a in (NO_SPEC, DFLASH)}


def register(algorithm: SpecAlgorithm) -> None:
    """Add a plug-in algorithm. A second one of the same name is refused."""
    if algorithm.name in _REGISTRY:
        raise InputError(f"speculative algorithm '{algorithm.name}' is registered already")
    _REGISTRY[algorithm.name] = algorithm


def get(name: str) -> SpecAlgorithm:
    """The algorithm of that name; InputError with the known names otherwise."""
    if name not in _REGISTRY:
        raise InputError(f"unknown speculative algorithm '{name}'; registered: {', '.join(_REGISTRY)}")
    return _REGISTRY[name]
