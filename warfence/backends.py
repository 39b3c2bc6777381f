"""Which backends there are. A backend is a package and an entry point in the group `warfence.backends`, no more.

An entry point that ends in `:PACKAGE` gives a `BackendPackage`, which is read without importing a framework; any other one
is taken for the factory itself, of which nothing else is known. So is a dotted path wherever a backend's name is asked for.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from warfence.backend_package import BackendPackage
from warfence.core.backend import Backend
from warfence.core.errors import InputError
from warfence.core.plugins import load_entry

GROUP = "warfence.backends"
OBJECT = "PACKAGE"
BESIDE = "warfence_*/package.py"  # where a package says it in a bare checkout, where no entry point is seen
# Always known, never offered as a choice: for tests of suites and fences, not for serving.
REFERENCE = {"strict": BackendPackage("strict", "warfence.parity.strict.backend:StrictBackend", "strict reference")}


def available() -> dict[str, BackendPackage]:
    """All backends by name: by their `order`, then by name. Imports no framework, and nothing of a bare factory.

    Packages `warfence_*` on the path are found without an entry point, and win over one: it is the same package, and its
    entry point may be of an older installation. The strict reference backend is not among them: `package` knows it, nobody
    serves with it. A package that cannot be read is a bare name here; `load` says what is wrong with it.
    """
    found = {entry.name: _read(entry) for entry in (*entry_points(group=GROUP), *_beside())}
    return {one.name: one for one in sorted(found.values(), key=lambda one: (one.order, one.name))}


def package(name: str) -> BackendPackage:
    """What a backend says of itself: a known name, or a dotted "pkg.mod:attr", which is also looked for where you stand.

    InputError for a name that is none, with those that are known.
    """
    if ":" in name:
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())  # the console script does not look there, `python -m` does
        return _object(name) if _is_object(name) else BackendPackage(name, name)
    known = available()
    if (one := known.get(name, REFERENCE.get(name))) is None:
        raise InputError(
            f"unknown backend '{name}'; known: {', '.join(known)}, or a dotted path 'pkg.mod:attr', "
            f"or for tests: {', '.join(REFERENCE)}"
        )
    return one


def load(name: str) -> Callable[..., Backend]:
    """The factory of a backend: `factory(device=..., **options) -> Backend`.

    Takes what `package` takes. InputError also says what to install when the framework itself is missing.
    """
    one = package(name)
    check_installed(one)
    if _is_object(one.factory):  # a package that could not be read: now its error is due
        load_entry(EntryPoint(one.name, one.factory, GROUP), BackendPackage)
    return cast("Callable[..., Backend]", resolve(one, one.factory))


def resolve(one: BackendPackage, target: str) -> Any:
    """The object behind one of a package's references, "module:attr". InputError: it cannot be loaded."""
    return _resolve(one.name, target)


def is_installed(one: BackendPackage) -> bool:
    """Whether the framework is here, if it needs one. Imports nothing."""
    return one.framework is None or find_spec(one.framework.module) is not None


def check_installed(one: BackendPackage) -> None:
    """InputError, with the remedy, where the framework is missing."""
    if one.framework is not None and not is_installed(one):
        raise InputError(
            f"backend '{one.name}' needs the package '{one.framework.module}', which is not installed: "
            f"{one.framework.install}"
        )


def installed() -> list[str]:
    """What is taken where no backend is named: all whose framework is installed, in the order of `available`.

    InputError, with the remedies, where there is none.
    """
    if not (found := [name for name, one in available().items() if is_installed(one)]):
        raise InputError(f"no backend is installed; do one of: {'; '.join(missing().values()) or 'none is known'}")
    return found


def missing() -> dict[str, str]:
    """Each backend whose framework is not installed, and how to install it."""
    return {
        name: one.framework.install
        for name, one in available().items()
        if one.framework is not None and not is_installed(one)
    }


def versions(one: BackendPackage) -> dict[str, str]:
    """The versions of what the backend runs on, by distribution; of one without metadata it is "unknown"."""
    names = (one.framework.module, *one.framework.companions) if one.framework is not None else ()
    return {name: version_of(name) for name in names}


def version_of(distribution: str) -> str:
    """Its version, or "unknown": a module may lie here without any metadata."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"


def prepare_environment() -> None:
    """Set the variables that frameworks read when they are imported, unless the user did. Call it before that."""
    for one in available().values():
        for variable, value in (one.framework.environment if one.framework else {}).items():
            os.environ.setdefault(variable, value)


def _beside() -> list[EntryPoint]:
    """An entry point for each package `warfence_*` on the path that has `package.py`; the first of a name wins."""
    names = [file.parent.name for folder in sys.path for file in sorted(Path(folder or ".").glob(BESIDE))]
    return [EntryPoint(name.partition("_")[2], f"{name}.package:{OBJECT}", GROUP) for name in dict.fromkeys(names)]


def _read(entry: EntryPoint) -> BackendPackage:
    if _is_object(entry.value):
        try:
            return load_entry(entry, BackendPackage)
        except InputError:
            pass  # listing goes on without it; `load` raises the same again
    return BackendPackage(entry.name, entry.value)


def _object(path: str) -> BackendPackage:
    if not isinstance(found := _resolve(path, path), BackendPackage):
        raise InputError(f"'{path}' is {found!r}; it must be a BackendPackage, or have another name than {OBJECT}")
    return found


def _is_object(target: str) -> bool:
    return target.partition(":")[2] == OBJECT


def _resolve(name: str, target: str) -> Any:
    module, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"backend '{name}' cannot be loaded from '{target}': {error}") from error
