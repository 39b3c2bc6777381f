"""`warfence backends`, and the registry behind it."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from warfence import backends
from warfence.cli import main, survey
from warfence.core.errors import InputError


def _register(monkeypatch: pytest.MonkeyPatch, **targets: str) -> None:
    points = EntryPoints(EntryPoint(name, target, backends.GROUP) for name, target in targets.items())
    monkeypatch.setattr(backends, "entry_points", lambda group: points.select(group=group))


def test_a_bare_checkout_has_the_two_that_lie_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch)
    assert backends.available() == {
        "torch": "warfence_torch.backend:TorchBackend",
        "jax": "warfence_jax.backend:JaxBackend",
    }


def test_a_third_backend_is_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch, jax="warfence_jax.backend:JaxBackend", zeta="collections:OrderedDict")
    assert list(backends.available()) == ["torch", "jax", "zeta"]
    assert backends.load("zeta").__name__ == "OrderedDict"
    assert backends.load("collections:Counter").__name__ == "Counter"


def test_an_unknown_name_names_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch)
    with pytest.raises(InputError, match=r"unknown backend 'tensor'; known: jax, torch, or a dotted path"):
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
    assert backends.available()["zeta"] == "no_such_module:Thing"
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
