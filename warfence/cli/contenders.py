"""The backends that `warfence parity` and `warfence boundary` are asked for, each with a short name of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec

from warfence import backends
from warfence.core.errors import InputError
from warfence.parity.selection import choose
from warfence.parity.suite import Contender
from warfence.serve.jobs.start import open_backend

# Read by the frameworks when they are imported. On a machine with a GPU jax would take most of the memory, which torch may
# need. Each lane brings its own thread: with a team of threads for each operation besides, torch on two cores takes 50
# times as long.
BEFORE_IMPORT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "OMP_NUM_THREADS": "1"}


def contenders(names: Sequence[str], device: str) -> dict[str, Contender]:
    """One entry a backend, in the order given; without names the built-in ones that are installed.

    InputError for a name or a dotted path that leads to no backend. Starts nothing.
    """
    for variable, value in BEFORE_IMPORT.items():
        os.environ.setdefault(variable, value)
    if any(":" in name for name in names) and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # the console script does not look there, `python -m` does
    found: dict[str, Contender] = {}
    for name in dict.fromkeys(names or _installed()):
        target = (
            name if ":" in name else choose("backend", [name], _known(), "; or give a dotted path 'pkg.mod:attr'")[0]
        )
        label = _label(target, backends.load(target), found)
        unguarded = backends.UNGUARDED.get(target, {})
        found[label] = Contender(
            target, partial(open_backend, target, device, {}), partial(open_backend, target, device, unguarded)
        )
    return found


def missing(names: Sequence[str]) -> dict[str, str]:
    """The built-in backends that would have been taken if their framework were installed, and how to install it."""
    return {} if names else {name: how for name, how in backends.INSTALL.items() if find_spec(name) is None}


def _installed() -> list[str]:
    found = [name for name in backends.BUILT_IN if find_spec(name) is not None]
    if not found:
        raise InputError(f"no backend is installed; do one of: {'; '.join(backends.INSTALL.values())}")
    return found


def _known() -> list[str]:
    return [*backends.available(), *backends.REFERENCE]


def _label(target: str, factory: Callable[..., object], taken: dict[str, Contender]) -> str:
    """A dotted path is long: the backend's own name, where it says one that is free."""
    own = getattr(factory, "name", None)
    return own if ":" in target and isinstance(own, str) and own not in taken else target
