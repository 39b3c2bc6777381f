"""Which backends replay scenarios, and on what machines."""

from __future__ import annotations

from warfence import backends
from warfence.backend_package import BackendPackage
from warfence.core.errors import InputError
from warfence.races.replay.machine import Machines


def replaying() -> dict[str, BackendPackage]:
    """The backends that say how they replay scenarios, by name."""
    return {name: one for name, one in backends.available().items() if one.replay}


def devices() -> tuple[str, ...]:
    """All devices that some backend replays scenarios on."""
    return tuple(dict.fromkeys(device for one in replaying().values() for device in one.replay))


def installed() -> list[str]:
    """Those that can be asked here. InputError with the remedy where there is none."""
    here = backends.installed()
    if not (found := [name for name in replaying() if name in here]):
        raise InputError(f"no backend that is installed here ({', '.join(here)}) replays scenarios; {_choice()}")
    return found


def machines(name: str, device: str) -> list[Machines]:
    """All kinds of machines of one backend, by name or dotted path.

    InputError: no such backend, it replays nothing on that device, or it is not installed.
    """
    one = backends.package(name)
    if not one.replay:
        raise InputError(f"backend '{name}' does not say how it replays scenarios; {_choice()}")
    if device not in one.replay:
        raise InputError(f"backend '{name}' replays scenarios on {', '.join(one.replay)}, not on '{device}'")
    backends.check_installed(one)
    found: list[Machines] = backends.resolve(one, one.replay[device])()
    return found


def _choice() -> str:
    return f"choose one of: {', '.join(replaying())}; or give a dotted path 'pkg.mod:{backends.OBJECT}'"
