"""Starts a backend by name, and says what to do where it cannot."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping

from warfence import backends
from warfence.core.backend import Backend
from warfence.core.errors import InputError

# A kernel of a model this small is over before a second thread would have begun, and the lanes bring threads of their own.
SMALL_MODEL_WEIGHTS = 20_000_000


def one_thread_for_small(weights: int) -> None:
    """Keep the libraries to one thread for a small model, unless the user chose. Before a framework is imported."""
    if weights < SMALL_MODEL_WEIGHTS:
        os.environ.setdefault("OMP_NUM_THREADS", "1")


def check_backend(name: str) -> None:
    """InputError for a name that is no backend: which are installed here, and what to install for the others."""
    known = backends.available()
    if name in known or ":" in name:
        return
    here = [n for n, one in known.items() if backends.is_installed(one)]
    absent = [f"{n} ({how})" for n, how in backends.missing().items()]
    raise InputError(
        f"unknown backend '{name}'; installed here: {', '.join(here) or 'none'}"
        + (f"; not installed: {', '.join(absent)}" if absent else "")
        + "; or give a dotted path 'pkg.mod:attr'"
    )


def open_backend(name: str, device: str, options: Mapping[str, str]) -> Backend:
    """Start a backend; InputError where it cannot be loaded, lacks the device, or does not know an option."""
    factory = backends.load(name)
    try:
        inspect.signature(factory).bind(device=device, **options)
    except TypeError as cause:
        given = ", ".join(f"--{key} {value}" for key, value in options.items()) or "--device"
        raise InputError(f"backend '{name}' does not know {given} ({cause}); drop it") from cause
    return factory(device=device, **options)
