"""Help texts of options that several commands have, made of what is registered here."""

from __future__ import annotations

from collections.abc import Iterable

from warfence import backends
from warfence.core.attention import attention_names
from warfence.races.replay.registry import replaying
from warfence.serve.spec import names


def listed(choices: Iterable[str], last: str = "or") -> str:
    """ "a, b or c"."""
    *front, end = choices
    return f"{', '.join(front)} {last} {end}" if front else end


_NAMES = (*backends.available(),)
DEVICES = tuple(dict.fromkeys(device for one in backends.available().values() for device in one.devices))

BACKEND = f"{listed((*_NAMES, 'pkg.mod:attr'))}."
BACKENDS = f"{listed((*_NAMES, 'strict (the reference)', 'pkg.mod:attr'))}; may be repeated."
REPLAYING = f"{listed((*replaying(), f'pkg.mod:{backends.OBJECT}'))}; may be repeated."
FIRST = f"the first that is installed of {listed(_NAMES, 'and')}"
INSTALLED = f"{listed(_NAMES, 'and')}, if installed"
DEVICE = f"{listed(DEVICES)}."
DEVICE_OF_ALL = f"{listed(DEVICES)}, for every backend."
ATTENTION = f"{listed(attention_names())}."
ATTENTIONS = f"{listed(attention_names())}; may be repeated."
SPEC = f"{listed(names())}."
