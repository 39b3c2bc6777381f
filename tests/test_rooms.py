"""Arrows run one way: which room of the house imports which, at run time, in a function, or for types. It can fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Room -> the rooms that it may import. Files beside the rooms are rooms, too.
HEART = {"core"}
GROUND = HEART | {"host", "backend_package", "backends"}
SERVING = GROUND | {"serve"}
JUDGING = SERVING | {"races"}
PROVING = JUDGING | {"parity"}
ALLOWED = {
    "core": set[str](),
    "host": HEART,
    "backend_package": set[str](),
    "backends": HEART | {"backend_package"},
    "serve": GROUND,
    "races": SERVING,
    "parity": JUDGING,
    "bench": PROVING,
    "show": PROVING | {"bench"},
    "cli": PROVING | {"bench", "show"},
    "__init__": HEART | {"parity"},  # its public names: those of the heart, and the historical rule sets
    "__main__": {"cli"},
}
# A backend's own part stands on the heart; its tools may import what they serve, and never the command line.
OWN_PART, TOOLS = GROUND, PROVING | {"show"}


def imports(file: Path) -> Iterator[str]:
    """Every module that a file names in an import, wherever the statement stands."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            deeper = node.module.count(".") == 0  # `from warfence import backends`: the name may be a room
            yield from (f"{node.module}.{alias.name}" if deeper else node.module for alias in node.names)


def rooms_in(module: str, known: set[str]) -> set[str]:
    """The room that a module of `warfence` is in. The version and the lazy names of the package itself are no room."""
    head, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return {room} & known if head == "warfence" else set()


def violations(root: Path) -> dict[str, str]:
    """ "file: module" of each import against the arrows -> the rooms that the file may import."""
    found = {}
    for file in sorted(root.glob("warfence*/**/*.py")):
        package, *inside = file.relative_to(root).with_suffix("").parts
        if package == "warfence":
            room, allowed = inside[0], ALLOWED.get(inside[0], set())
        else:
            room, allowed = package, TOOLS if inside[0] == "tools" else OWN_PART
        for module in imports(file):
            other = module.partition(".")[0]
            foreign = other.startswith("warfence_") and other != package
            if foreign or rooms_in(module, set(ALLOWED)) - allowed - {room}:
                found[f"{file.relative_to(root)}: {module}"] = ", ".join(sorted(allowed)) or "nothing else"
    return found


def test_every_room_has_its_arrows() -> None:
    rooms = {path.relative_to(ROOT / "warfence").parts[0] for path in (ROOT / "warfence").rglob("*.py")}
    assert {room.removesuffix(".py") for room in rooms} == set(ALLOWED)


def test_arrows_run_one_way() -> None:
    assert violations(ROOT) == {}


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("warfence/core/a.py", "from warfence.host.lanes import WorkerLane"),
        ("warfence/core/a.py", "def f():\n    import warfence.parity.rig"),
        ("warfence/core/a.py", "if TYPE_CHECKING:\n    from warfence import backends"),
        ("warfence/serve/deep/a.py", "from warfence.races.check.log_file import Log"),
        ("warfence/races/a.py", "from warfence.parity.probe import Probe"),
        ("warfence/races/a.py", "from warfence.show.timeline.model import Slice"),
        ("warfence/parity/a.py", "from warfence.bench import presets"),
        ("warfence/bench/a.py", "from warfence.show.report.page import page"),
        ("warfence/show/a.py", "import warfence.cli.words"),
        ("warfence/host/a.py", "import warfence_torch.lanes_cuda"),
        ("warfence_torch/a.py", "from warfence.serve.engine import Engine"),
        ("warfence_torch/tools/a.py", "from warfence.cli import words"),
        ("warfence_jax/tools/a.py", "from warfence_torch import plant"),
    ],
)
def test_an_arrow_the_wrong_way_is_found(file: str, code: str, tmp_path: Path) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(code)
    assert len(violations(tmp_path)) == 1


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("warfence/serve/a.py", "from warfence import __version__\nfrom warfence.serve.b import c\nimport numpy"),
        ("warfence/parity/a.py", "from warfence.races.check.findings import check"),
        ("warfence_torch/a.py", "from warfence_torch.b import c\nfrom warfence.host.lanes import WorkerLane"),
    ],
)
def test_an_arrow_the_right_way_is_not(file: str, code: str, tmp_path: Path) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(code)
    assert violations(tmp_path) == {}
