"""`warfence backends`, and the registry behind it."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from warfence import backends
from warfence.cli import main, survey
from warfence.core.errors import InputError

ETA = """
from warfence.backend_package import BackendPackage
PACKAGE = BackendPackage("eta", "collections:OrderedDict", order=1, unguarded={"tables": "bare"})
"""


def _register(monkeypatch: pytest.MonkeyPatch, **targets: str) -> None:
    points = EntryPoints(EntryPoint(name, target, backends.GROUP) for name, target in targets.items())
    monkeypatch.setattr(backends, "entry_points", lambda group: points.select(group=group))


def test_a_bare_checkout_has_the_two_that_lie_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch)
    assert {name: one.factory for name, one in backends.available().items()} == {
        "torch": "warfence_torch.backend:TorchBackend",
        "jax": "warfence_jax.backend:JaxBackend",
    }


def test_a_package_that_lies_beside_is_found_and_one_without_the_object_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _register(monkeypatch)
    for name, text in (("warfence_eta", ETA), ("other_eta", ETA), ("warfence_empty", None)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        if text is not None:
            (tmp_path / name / "package.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert list(backends.available()) == ["eta", "torch", "jax"], "by their order, then by name"
    assert backends.package("eta").unguarded == {"tables": "bare"}
    assert backends.installed()[0] == "eta"


def test_an_entry_point_of_an_older_installation_does_not_hide_what_a_package_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _register(monkeypatch, jax="warfence_jax.backend:JaxBackend")
    assert backends.package("jax").unguarded == {"tables": "aliased"}


def test_a_third_backend_is_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch, zeta="collections:OrderedDict", beta="collections:Counter")
    assert list(backends.available()) == ["torch", "jax", "beta", "zeta"]
    assert backends.load("zeta").__name__ == "OrderedDict"
    assert backends.load("collections:Counter").__name__ == "Counter"


def test_an_entry_point_gives_all_that_a_package_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "its_package.py").write_text(ETA)
    monkeypatch.syspath_prepend(tmp_path)
    _register(monkeypatch, eta="its_package:PACKAGE")
    assert backends.available()["eta"].unguarded == {"tables": "bare"}
    assert backends.load("eta").__name__ == "OrderedDict"
    assert backends.load("its_package:PACKAGE").__name__ == "OrderedDict", "a dotted path may lead there as well"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "raise OSError('no driver')",
            r"cannot be loaded from 'bad_package:PACKAGE' \(OSError: no driver\); mend or unin",
        ),
        ("PACKAGE = 3", r"gives 3; the package 'bad_package' must give a BackendPackage named 'bad'"),
        (ETA.replace("eta", "theta"), r"gives BackendPackage\(name='theta'.*must give a BackendPackage named 'bad'"),
    ],
)
def test_a_package_that_cannot_be_read_is_listed_and_says_why_when_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "bad_package.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bad_package", raising=False)
    _register(monkeypatch, bad="bad_package:PACKAGE")
    assert list(backends.available()) == ["torch", "jax", "bad"]
    with pytest.raises(InputError, match=f"entry point 'bad' of group warfence.backends {message}"):
        backends.load("bad")


def test_a_dotted_package_is_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "no_package.py").write_text("PACKAGE = 3")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        InputError, match="'no_package:PACKAGE' is 3; it must be a BackendPackage, or have another name"
    ):
        backends.package("no_package:PACKAGE")


def test_an_unknown_name_names_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch)
    with pytest.raises(InputError, match=r"unknown backend 'tensor'; known: torch, jax, or a dotted path"):
        backends.load("tensor")


def test_a_framework_that_is_not_installed_is_told_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs the package 'torch', which is not installed: pip install"):
        backends.load("torch")


@pytest.mark.parametrize(
    ("target", "reason"),
    [("nowhere.backend:Backend", "No module named 'nowhere'"), ("collections:Backend", "no attribute 'Backend'")],
)
def test_a_target_that_cannot_be_loaded_says_why(target: str, reason: str) -> None:
    with pytest.raises(InputError, match=f"'{target}' cannot be loaded from '{target}': .*{reason}"):
        backends.load(target)


def test_listing_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch, zeta="no_such_module:Thing")
    assert backends.available()["zeta"].factory == "no_such_module:Thing"
    assert "no_such_module" not in sys.modules


def test_people_read_why_a_backend_lacks_something(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {
        "backend:torch": {
            "error": None,
            "device": "cpu",
            "capabilities": {"gates": True, "guards_writes": False, "external_markers": False},
            "reasons": {"guards_writes": "writes are in place"},
        },
        "backend:jax": {"error": "ImportError: no jaxlib"},
    }
    _register(monkeypatch)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(survey, "ask", answers.__getitem__)
    assert main(["backends"]) == 0
    text = capsys.readouterr().out
    for expected in ("ImportError: no jaxlib", "no: writes are in place", "yes", "external_markers"):
        assert expected in text
