"""The backends that `warfence parity` and `warfence boundary` are asked for, each with a short name of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from warfence import backends
from warfence.core.errors import InputError
from warfence.parity.selection import choose
from warfence.parity.suite import Contender
from warfence.serve.jobs.start import open_backend


def prepare() -> None:
    """Set what frameworks read when they are imported, unless the user did.

    Each lane brings its own thread: with a team of threads for each operation besides, two cores take 50 times as long.
    """
    backends.prepare_environment()
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def contenders(names: Sequence[str], device: str, ways: Mapping[str, str | None] | None = None) -> dict[str, Contender]:
    """One entry a backend, in the order given; without names all that are installed. ways: tables, marker and ticket, where they
    were given; each backend takes those that it knows.

    InputError for a name or a dotted path that leads to no backend, or for a way that none of these backends knows. Starts
    nothing.
    """
    given = {way: value for way, value in (ways or {}).items() if value is not None}
    known = {name: backends.package(name).options for name in names or backends.installed()} if given else {}
    for way, value in given.items():
        if not any(value in options.get(way, ()) for options in known.values()):
            raise InputError(unknown_way(way, value, known))
    prepare()
    found: dict[str, Contender] = {}
    for name in dict.fromkeys(names or backends.installed()):
        target = (
            name if ":" in name else choose("backend", [name], _known(), "; or give a dotted path 'pkg.mod:attr'")[0]
        )
        label = _label(target, backends.load(target), found)
        package = backends.package(target)
        taken = {way: value for way, value in given.items() if value in package.options.get(way, ())}
        unguarded = taken if "tables" in taken else {**package.unguarded, **taken}
        found[label] = Contender(
            target,
            partial(open_backend, target, device, taken),
            partial(open_backend, target, device, unguarded),
            taken,
        )
    return found


def unknown_way(way: str, value: str, known: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """The sentence that refuses a way of these backends (what each knows), with what there is."""
    there = [f"{name} ({', '.join(options[way])})" for name, options in known.items() if way in options]
    none = f"none, for {' and '.join(known)} have no --{way}"
    return f"--{way} is '{value}'; choose one of: {'; '.join(there) or none}"


def missing(names: Sequence[str]) -> dict[str, str]:
    """The backends that would have been taken if their framework were installed, and how to install it."""
    return {} if names else backends.missing()


def _known() -> list[str]:
    return [*backends.available(), *backends.REFERENCE]


def _label(target: str, factory: Callable[..., object], taken: dict[str, Contender]) -> str:
    """A dotted path is long: the backend's own name, where it says one that is free."""
    own = getattr(factory, "name", None)
    return own if ":" in target and isinstance(own, str) and own not in taken else target
