"""The map is of this house: what it names is there, and every room and folder is named. And this check can fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAP = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## One step")[0]


def named(text: str) -> set[str]:
    """The paths in backticks: those with a folder in them or at their end, or a file."""
    return {one for one in re.findall(r"`([\w/.]+)`", text) if one.endswith(("/", ".py"))}


def absent(text: str, root: Path) -> list[str]:
    """What is named and not there. A file without a folder is of the core, or lies beside the house."""
    places = (root, root / "warfence" / "core")
    return sorted(one for one in named(text) if not any((place / one).exists() for place in places))


def test_what_the_map_names_is_there() -> None:
    assert len(named(MAP)) > 50
    assert absent(MAP, ROOT) == []


def test_every_room_every_folder_of_it_and_every_file_of_the_core_is_named() -> None:
    house = ROOT / "warfence"
    folders = [
        one for one in (*house.iterdir(), *house.glob("*/*")) if any(one.glob("**/*.py")) or any(one.glob("*.scenario"))
    ]
    parts = [f"{one.relative_to(ROOT).as_posix()}/" for one in folders]
    core = [one.name for one in (house / "core").glob("*.py") if one.stem != "__init__"]
    assert len(parts) > 25
    assert [one for one in (*parts, *core) if one not in named(MAP)] == []


@pytest.mark.parametrize("text", ["`warfence/core/nowhere.py`", "see `warfence/attic/`", "`fences.py`"])
def test_a_wrong_name_is_found(text: str) -> None:
    assert len(absent(text, ROOT)) == 1
