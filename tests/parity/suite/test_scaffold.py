"""`warfence backends new` and `check`: a package that collects and says what is missing, or nothing at all."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from warfence import backends
from warfence.cli import main
from warfence.core.backend import Backend, Forward, Lane, Outputs, SharedTables
from warfence.parity.scaffold import package
from warfence.parity.scaffold.unwritten import NotWritten, still_to_write, unwritten

ROOT = Path(__file__).resolve().parents[3]
FILES = [
    "README.md", "pyproject.toml", "tests/test_parity.py", "zeta_two/__init__.py", "zeta_two/backend.py",
    "zeta_two/package.py",
]  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> Path:
    assert main(["backends", "new", "zeta_two", "--dir", str(tmp_path)]) == 0
    return tmp_path / "zeta_two"


@pytest.fixture
def module(made: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(made)
    yield importlib.import_module("zeta_two.backend")
    for name in [n for n in sys.modules if n.partition(".")[0] == "zeta_two"]:
        del sys.modules[name]


def methods(protocol: type) -> set[str]:
    return {n for n, m in vars(protocol).items() if inspect.isfunction(m) and not n.startswith("_")}


def parameters(method: object) -> list[tuple[str, object, object]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]  # type: ignore[arg-type]


def test_the_package_lies_there_whole(capsys: pytest.CaptureFixture[str], made: Path) -> None:
    assert sorted(p.relative_to(made).as_posix() for p in made.rglob("*") if p.is_file()) == FILES
    assert [p.name for p in made.parent.iterdir()] == ["zeta_two"], "no scratch is left"
    told = capsys.readouterr().out.splitlines()
    assert sorted(told[:-1]) == sorted(str(made / file) for file in FILES)
    assert told[-1] == f"Next: cd {made} && warfence backends check zeta_two.backend:ZetaTwoBackend"
    points = tomllib.loads((made / "pyproject.toml").read_text())["project"]["entry-points"]
    assert points == {"warfence.backends": {"zeta_two": "zeta_two.package:PACKAGE"}}
    assert not any("{{" in (made / file).read_text() for file in FILES)


def test_its_entry_point_says_what_it_is(module: ModuleType) -> None:
    one = backends.package("zeta_two.package:PACKAGE")
    assert (one.name, one.devices) == ("zeta_two", ("cpu",))
    assert backends.load("zeta_two.package:PACKAGE") is module.ZetaTwoBackend


def test_every_method_of_the_interface_is_there_with_its_signature(module: ModuleType) -> None:
    for protocol, name in (
        (Backend, "Backend"), (Forward, "Forward"), (Lane, "Lane"), (Outputs, "Outputs"), (SharedTables, "Tables"),
    ):  # fmt: skip
        written = getattr(module, f"ZetaTwo{name}")
        for method in methods(protocol):
            assert parameters(getattr(written, method)) == parameters(getattr(protocol, method)), f"{name}.{method}"
    missing = {m.method for m in still_to_write(module.ZetaTwoBackend)}
    assert len(missing) == sum(len(methods(p)) for p in (Backend, Forward, Lane, Outputs, SharedTables))


def test_a_method_that_is_not_written_says_what_it_must_do(module: ModuleType) -> None:
    backend = module.ZetaTwoBackend()
    assert not backend.capabilities.gates
    assert backend.capabilities.reasons["gates"] == "not written yet"
    with pytest.raises(
        NotWritten, match=r"ZetaTwoBackend\.lane is not written yet .* What it must do: Give the lane of"
    ):
        backend.lane("schedule")
    with pytest.raises(NotWritten, match=r"ZetaTwoForward\.replay .* Arm the marker anew for this launch, then call"):
        module.ZetaTwoForward(None, None, False).replay(1)
    with pytest.raises(Exception, match="backend zeta_two: unknown device 'moon'; choose one of: cpu"):
        module.ZetaTwoBackend("moon")


def test_check_lists_what_is_left(
    module: ModuleType, made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target, count = "zeta_two.backend:ZetaTwoBackend", len(still_to_write(module.ZetaTwoBackend))
    monkeypatch.chdir(made)
    monkeypatch.setenv("COLUMNS", "200")
    capsys.readouterr()
    assert main(["backends", "check", target]) == 1
    streams = capsys.readouterr()
    assert "ZetaTwoLane.wait_lane" in streams.out
    assert streams.err == f"error: backend '{target}': {count} methods are still to write\n"
    monkeypatch.setattr(module.ZetaTwoLane, "record", lambda self, launch: None)
    assert main(["backends", "check", target, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["ok"], len(said["missing"])) == (False, count - 1)
    duties = {m["method"]: m["duty"] for m in said["missing"]}
    assert duties["ZetaTwoBackend.close"] == "End lanes and threads. Safe to call twice, and after a failure."


def test_check_finds_methods_that_a_class_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    class Half:
        def lane(self, name: str) -> None:
            """Written."""

        @unwritten
        def close(self) -> None:
            """End everything."""

    Half.__module__ = "nowhere.backend"
    missing = {m.method.rpartition(".")[2] for m in still_to_write(Half)}
    assert missing == methods(Backend) - {"lane", "close"}, "marked methods are found by module, and this has none"
    assert main(["backends", "check", "strict"]) == 0
    assert capsys.readouterr().out == "Nothing is missing. Next: pytest --pyargs parity_tests --backend strict\n"
    assert main(["backends", "check", "no_such_backend"]) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("3d", "'3d' cannot name a Python package; use a letter"),
        ("my-backend", "'my-backend' cannot name a Python package"),
        ("../escape", "'../escape' cannot name"),
        ("class", "'class' cannot name"),
        ("", "'' cannot name"),
        ("torch", "a backend 'torch' is registered already"),
        ("strict", "a backend 'strict' is registered already"),
        ("json", "there is a module 'json' already, which the package would hide"),
    ],
)
def test_names_that_cannot_be(name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends", "new", name, "--dir", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
    assert list(tmp_path.iterdir()) == []


def test_what_exists_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "zeta_two").mkdir()
    assert main(["backends", "new", "zeta_two", "--dir", str(tmp_path)]) == 2
    assert "zeta_two' exists already; remove it, or choose another name or --dir" in capsys.readouterr().err
    assert list((tmp_path / "zeta_two").iterdir()) == []
    assert main(["backends", "new", "zeta_two", "--dir", str(tmp_path / "absent")]) == 2
    assert "there is no directory '" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["backends", "new", "zeta_two", "--dir", str(tmp_path / "file")]) == 2


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_is_half_written(
    problem: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    render, write_text = package.render, Path.write_text

    def fail_at_the_third(self: Path, *args: str, **kwargs: str) -> int:
        if self.name == list(render("zeta_two"))[2].rpartition("/")[2]:
            raise problem
        return write_text(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", fail_at_the_third)
    assert main(["backends", "new", "zeta_two", "--dir", str(tmp_path)]) in (2, 130)
    assert list(tmp_path.iterdir()) == []
    if isinstance(problem, OSError):
        assert "zeta_two' cannot be written (No space left on device); give another --dir" in capsys.readouterr().err


def test_the_group_still_lists(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from warfence.cli import backends

    monkeypatch.setattr(backends, "report", list)
    assert main(["backends", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"backends": []}
    assert main(["backends", "old"]) == 2


@pytest.mark.slow
def test_pytest_collects_it_and_ruff_has_nothing_to_say(made: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(collect, cwd=made, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_the_parity_suite_passes" in done.stdout
    for arguments in (["check", "--select", "F"], ["format", "--check", "--line-length", "120"]):
        ruff = [sys.executable, "-m", "ruff", *arguments, "--isolated", "--no-cache", str(made)]
        done = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
