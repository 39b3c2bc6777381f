"""Starting a backend by name: what is installed, what to install, and options that a backend does not know."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from warfence import backends
from warfence.core.errors import InputError
from warfence.serve.jobs import start

THEIRS = """
class Backend:
    def __init__(self, device="cpu", *, tables="plain"):
        self.device, self.tables = device, tables

class Bare:
    def __init__(self, device="cpu"):
        raise TypeError("a bug of theirs")
"""


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_backend.py").write_text(THEIRS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [p for p in sys.path if p])


def test_an_unknown_name_tells_what_is_here_and_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "entry_points", lambda group: [])
    monkeypatch.setattr(backends, "find_spec", lambda name: None if name == "jax" else object())
    message = (
        r"unknown backend 'tensor'; installed here: torch; not installed: jax \(pip install 'warfence\[jax\]'\);"
        r" or give a dotted path 'pkg.mod:attr'"
    )
    with pytest.raises(InputError, match=message):
        start.check_backend("tensor")
    start.check_backend("torch")
    start.check_backend("any.module:attr")


@pytest.mark.usefixtures("theirs")
def test_a_dotted_path_is_found_in_the_working_directory() -> None:
    backend = start.open_backend("their_backend:Backend", "tpu", {"tables": "aliased"})
    assert (backend.device, backend.tables) == ("tpu", "aliased")  # type: ignore[attr-defined]


@pytest.mark.usefixtures("theirs")
def test_an_option_that_a_backend_lacks_is_named() -> None:
    with pytest.raises(InputError, match=r"backend 'their_backend:Bare' does not know --tables aliased .*; drop it"):
        start.open_backend("their_backend:Bare", "cpu", {"tables": "aliased"})
    with pytest.raises(TypeError, match="a bug of theirs"):
        start.open_backend("their_backend:Bare", "cpu", {})


@pytest.mark.slow
def test_torch_has_one_kind_of_table() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(InputError, match="backend 'torch' does not know --tables aliased"):
        start.open_backend("torch", "cpu", {"tables": "aliased"})
