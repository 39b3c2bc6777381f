"""The catalogue that comes with the package: scenario files of public reports, by group."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from warfence.core.errors import InputError
from warfence.races.scenarios.parse import parse
from warfence.races.scenarios.program import GROUPS, Scenario


@cache
def catalogue() -> tuple[Scenario, ...]:
    """Every scenario, by group, each wrong one in front of its fixed twin."""
    folder = files("warfence.races").joinpath("catalogue")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".scenario"))
    found = [parse(folder.joinpath(name).read_text("utf-8"), f"catalogue/{name}") for name in names]
    known = {one.id: one for one in found}
    ordered: dict[str, Scenario] = {}
    for one in (*(one for one in found if one.fixed_by), *found):
        for id in filter(None, (one.id, one.fixed_by)):
            ordered.setdefault(id, known[id])
    return tuple(sorted(ordered.values(), key=lambda one: GROUPS.index(one.group)))


def find(id: str) -> Scenario:
    """One scenario of the catalogue. InputError: there is none of that name."""
    known = {one.id: one for one in catalogue()}
    if id not in known:
        close = get_close_matches(id, known, 1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise InputError(f"no scenario '{id}' in the catalogue{hint}; `warfence explore --catalogue` lists them")
    return known[id]
