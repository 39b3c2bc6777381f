"""Which backends there are, and how to get one. Picking a name imports that backend and no other.

A backend is an entry point of the group `warfence.backends`, `name = "package.module:attribute"`. A checkout that
was never installed has no entry points, so the two backends that live beside this package are listed here as well.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from warfence.errors import InputError

if TYPE_CHECKING:
    from warfence.backend import Backend

GROUP = "warfence.backends"

BUILT_IN = {
    "torch": "warfence_torch.backend:TorchBackend",
    "jax": "warfence_jax.backend:JaxBackend",
}


def candidates() -> dict[str, list[str]]:
    """Every registered name with every target that claims it, built-in names first. More than one target is a clash."""
    found = {name: [target] for name, target in BUILT_IN.items()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        targets = found.setdefault(point.name, [])
        if point.value not in targets:
            targets.append(point.value)
    return found


def available() -> dict[str, str]:
    """Name -> "package.module:attribute" of every registered backend. Imports none of them."""
    return {name: targets[0] for name, targets in candidates().items()}


def load(name: str) -> Callable[..., Backend]:
    """Import one backend and return its class; called without arguments it starts with its defaults.

    `name` is a registered name, or a target "package.module:attribute". Raises `InputError` when the name is unknown,
    when two packages claim it, when the framework behind it is not installed, or when there is no such attribute.
    """
    target = name if ":" in name else _resolve(name)
    module_name, _, attribute = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        raise InputError(_missing(name, target, missing)) from missing
    try:
        backend: Callable[..., Backend] = getattr(module, attribute)
    except AttributeError:
        raise InputError(f"backend '{name}': module '{module_name}' has no attribute '{attribute}'") from None
    return backend


def _resolve(name: str) -> str:
    found = candidates()
    if name not in found:
        raise InputError(
            f"unknown backend '{name}'; registered: {', '.join(sorted(found))}; "
            f"or give a target such as 'package.module:Class'"
        )
    if len(found[name]) > 1:
        raise InputError(
            f"backend '{name}' is claimed by {' and by '.join(found[name])}; uninstall one, or give the target itself"
        )
    return found[name][0]


def _missing(name: str, target: str, missing: ModuleNotFoundError) -> str:
    package = (missing.name or "").partition(".")[0]
    if package and package != target.partition(".")[0]:
        extra = f"pip install 'warfence[{name}]'" if name in BUILT_IN else f"pip install {package}"
        return f"backend '{name}' needs the package '{package}', which is not installed: {extra}"
    return f"backend '{name}': cannot import '{target.partition(':')[0]}': {missing}"
