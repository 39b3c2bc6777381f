"""Which packages replay scenarios, by the name of their backend."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

from warfence.backends import INSTALL
from warfence.core.errors import InputError
from warfence.races.replay.machine import Machines

PACKAGES = {"torch": "warfence_torch.tools.replay", "jax": "warfence_jax.tools.replay"}
DEVICES = ("cpu", "cuda")


def installed() -> list[str]:
    """The backends that can be asked here. InputError with the remedy where there is none."""
    found = [name for name in PACKAGES if find_spec(name)]
    if not found:
        raise InputError(f"no backend is installed; do one of: {'; '.join(INSTALL.values())}")
    return found


def machines(name: str, device: str) -> list[Machines]:
    """All kinds of machines of one backend. InputError: no such backend or device, or it is not installed."""
    if name not in PACKAGES:
        raise InputError(f"no backend '{name}' replays scenarios; choose one of: {', '.join(PACKAGES)}")
    if device not in DEVICES:
        raise InputError(f"unknown device '{device}'; choose one of: {', '.join(DEVICES)}")
    if find_spec(name) is None:
        raise InputError(f"backend '{name}' needs the package '{name}', which is not installed: {INSTALL[name]}")
    found: list[Machines] = importlib.import_module(PACKAGES[name]).machines(device)
    return found
