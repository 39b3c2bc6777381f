"""What a backend says of itself. The neutral part knows no more of it, until it opens one; so this imports no framework.

A package has such an object in a module that is light to import, and an entry point that names it:
`NAME = "mine.package:PACKAGE"` in the group `warfence.backends`. Each reference is text, "module:attr", loaded when needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable and, in a line, what it does to a race."""

    name: str
    effect: str


@dataclass(frozen=True, slots=True)
class Framework:
    """What a backend runs on, and what `warfence doctor` says about it.

    module: what is looked for, without importing it. install: the command that installs it.
    requirements: by the extra that asks for them. companions: further distributions whose versions belong into a report.
    on_device: requirements that are of use beside a device other than the CPU only. install_on_device: the command for a
    machine whose device another framework sees and this one does not; empty where there is none.
    devices: a function without arguments that gives (platform, name) of each device that the framework sees, the CPU first.
    environment: set before the framework is imported, unless the user did. variables: those that hide a race or move it.
    """

    module: str
    install: str
    devices: str
    requirements: Mapping[str, tuple[str, ...]]
    companions: tuple[str, ...] = ()
    on_device: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    install_on_device: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class BackendPackage:
    """All that is known of a backend before it is opened.

    factory: `factory(device=..., **options) -> Backend`. title: for people. order: the place among the defaults, smallest
    first; equal ones go by name. devices: what `device` may be, the CPU first; empty: the factory says so itself.
    unguarded: options that leave the shared tables to the fence alone, where the runtime would guard them too.
    replay: for each device on which scenarios are replayed, a function without arguments that gives a list of
    `warfence.races.replay.machine.Machines`. framework: None where nothing has to be installed.
    options: constructor arguments beside the device that a user may give, and what each may be, in the words of the command line
    (tables, marker, ticket). The factory refuses what does not go together.
    compiles: a forward takes seconds to compile, so that the suite leaves out what other backends show.
    """

    name: str
    factory: str
    title: str = ""
    order: int = 100
    devices: tuple[str, ...] = ()
    unguarded: Mapping[str, str] = field(default_factory=dict)
    replay: Mapping[str, str] = field(default_factory=dict)
    framework: Framework | None = None
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compiles: bool = False
