"""The heart imports nothing else of ours, and `import warfence` gives its names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import warfence
from warfence import core

CORE = {
    "abilities", "attention", "backend", "batch", "errors", "fence", "forwards", "gates", "modes", "plugins", "policy", "program",
    "promises", "runner", "scheduler",
}  # fmt: skip
CAME_ALONG = (
    "import sys; import {}; print(*sorted(m for m in sys.modules if m.split('.')[0] in {{'warfence', 'torch', 'jax'}}))"
)


def came_along(imports: str) -> set[str]:
    """The modules of ours, and the frameworks, that are imported with it in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", CAME_ALONG.format(imports)], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_core_brings_nothing_else_along() -> None:
    assert came_along("warfence.core") == {"warfence", "warfence.core", *(f"warfence.core.{name}" for name in CORE)}


def test_another_room_would_be_seen() -> None:
    assert "warfence.serve" in came_along("warfence.serve.planner"), "or the test above could not fail"


def test_no_module_of_the_core_is_outside_the_list() -> None:
    folder = Path(core.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *CORE}
    written = [line for path in folder.glob("*.py") for line in path.read_text().splitlines() if line.strip()]
    assert len(written) < 2000, "it is read in an hour"


def test_the_package_gives_the_names_of_the_core() -> None:
    assert warfence.Scheduler is core.Scheduler
    assert set(core.__all__) <= set(dir(warfence))
    assert came_along("warfence") == {"warfence"}, "nothing is imported before it is asked for"


def test_another_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Planner'"):
        warfence.Planner  # noqa: B018
