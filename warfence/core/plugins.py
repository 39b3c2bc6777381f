"""Entry points of packages that are not ours: whatever goes wrong in one is an InputError that names it."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TypeVar

from warfence.core.errors import InputError

T = TypeVar("T")


def load_entry(entry: EntryPoint, kind: type[T]) -> T:
    """The object behind an entry point: of type `kind`, and of its name. InputError, with the package, where it is none."""
    package = entry.module.partition(".")[0]
    try:
        found = entry.load()
    except Exception as cause:
        raise InputError(
            f"entry point '{entry.name}' of group {entry.group} cannot be loaded from '{entry.value}' "
            f"({type(cause).__name__}: {cause}); mend or uninstall the package '{package}'"
        ) from cause
    if not isinstance(found, kind) or getattr(found, "name", None) != entry.name:
        raise InputError(
            f"entry point '{entry.name}' of group {entry.group} gives {found!r}; the package '{package}' must give "
            f"a {kind.__name__} named '{entry.name}'"
        )
    return found
