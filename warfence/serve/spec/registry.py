"""The algorithms by name: the built-in ones, those registered at run time, and those of installed packages.

A package declares its own with an entry point of the group `warfence.spec_algorithms` that gives a `SpecAlgorithm`.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode
from warfence.core.plugins import load_entry
from warfence.serve.spec.algorithm import NO_SPEC, SpecAlgorithm
from warfence.serve.spec.dflash import dflash
from warfence.serve.spec.eagle import eagle
from warfence.serve.spec.ngram import ngram, ngram_snapshot

GROUP = "warfence.spec_algorithms"

DFLASH = SpecAlgorithm(
    "dflash",
    supports_target_verify_read_done=True,
    supports_prefill_read_done=True,
    make=dflash,
    needs_draft=True,
)
EAGLE = SpecAlgorithm(
    "eagle",
    supports_draft_extend_read_done=True,
    draft_extend_after=frozenset({ForwardMode.TARGET_VERIFY, ForwardMode.EXTEND, ForwardMode.MIXED}),
    make=eagle,
    needs_draft=True,
)
NGRAM = SpecAlgorithm("ngram", make=ngram)
NGRAM_SNAPSHOT = SpecAlgorithm(
    "ngram-snapshot",
    supports_target_verify_read_done=True,
    supports_prefill_read_done=True,
    make=ngram_snapshot,
)

_REGISTRY: dict[str, SpecAlgorithm] = {a.name: a for a in (NO_SPEC, NGRAM, NGRAM_SNAPSHOT, DFLASH, EAGLE)}


def register(algorithm: SpecAlgorithm) -> None:
    """Add an algorithm for this process. A second one of the same name is refused."""
    if algorithm.name in _REGISTRY:
        raise InputError(f"speculative algorithm '{algorithm.name}' is registered already; choose another name")
    _REGISTRY[algorithm.name] = algorithm


def names() -> tuple[str, ...]:
    """All that `get` knows: the built-in ones first."""
    return tuple(dict.fromkeys((*_REGISTRY, *(e.name for e in entry_points(group=GROUP)))))


def get(name: str) -> SpecAlgorithm:
    """The algorithm of that name; InputError with the known names, or for an entry point that gives something else."""
    if name in _REGISTRY:
        return _REGISTRY[name]
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            return load_entry(entry, SpecAlgorithm)
    raise InputError(f"unknown speculative algorithm '{name}'; known: {', '.join(names())}")
