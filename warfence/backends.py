"""Which backends there are. A backend is a package and an entry point in the group `warfence.backends`, no more."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import cast

from warfence.core.backend import Backend
from warfence.core.errors import InputError

GROUP = "warfence.backends"
# For a bare checkout, where nothing is installed and so no entry point is seen.
BUILT_IN = {"torch": "warfence_torch.backend:TorchBackend", "jax": "warfence_jax.backend:JaxBackend"}
# Always known, never offered as a choice: for tests of suites and fences, not for serving.
REFERENCE = {"strict": "warfence.parity.strict.backend:StrictBackend"}
INSTALL = {"torch": "pip install 'warfence[torch]'", "jax": "pip install 'warfence[jax]'"}

# Options that leave the shared tables to the fence alone, where a runtime would guard them by itself.
UNGUARDED: dict[str, dict[str, str]] = {"jax": {"tables": "aliased"}}


def available() -> dict[str, str]:
    """Backend name -> "package.module:attribute". Installed entry points win over the built-in table.

    The strict reference backend is not among them: `load` knows it, nobody serves with it.
    """
    return BUILT_IN | {e.name: e.value for e in entry_points(group=GROUP)}


def load(name: str) -> Callable[..., Backend]:
    """The factory of a backend: `factory(device=..., **options) -> Backend`.

    Takes a known name or a dotted "pkg.mod:attr". InputError says what is known, or what to install when the framework
    itself is missing.
    """
    known = available()
    target = (REFERENCE | known).get(name, name if ":" in name else "")
    if not target:
        raise InputError(
            f"unknown backend '{name}'; known: {', '.join(sorted(known))}, or a dotted path 'pkg.mod:attr', "
            f"or for tests: {', '.join(REFERENCE)}"
        )
    module, _, attribute = target.partition(":")
    if name in INSTALL and find_spec(name) is None:
        raise InputError(f"backend '{name}' needs the package '{name}', which is not installed: {INSTALL[name]}")
    try:
        return cast("Callable[..., Backend]", getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise InputError(f"backend '{name}' cannot be loaded from '{target}': {error}") from error
