"""The child process that asks a framework or a backend about itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from warfence.cli import survey

BACKEND = """
from dataclasses import dataclass, field

@dataclass(frozen=True)
class Capabilities:
    gates: bool = True
    external_markers: bool = False
    reasons: dict = field(default_factory=lambda: {"external_markers": "no events here"})
    ways: dict = field(default_factory=dict)

class Good:
    device = "pretend"
    capabilities = Capabilities()
    def close(self):
        print("chatter on stdout")

class Bad:
    def __init__(self):
        raise OSError("no such device")

class Crash:
    def __init__(self):
        import os
        os._exit(7)

class Hang:
    def __init__(self):
        import threading
        threading.Event().wait()
"""


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pretend.py").write_text(BACKEND)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("pretend")
def test_nothing_of_the_current_directory_stands_for_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a json.py of the current directory was run')")
    assert survey.ask("backend:pretend:Good")["error"] is None


@pytest.mark.usefixtures("pretend")
def test_a_backend_tells_its_device_and_capabilities() -> None:
    assert survey.ask("backend:pretend:Good") == {
        "error": None,
        "device": "pretend",
        "capabilities": {"gates": True, "external_markers": False},
        "reasons": {"external_markers": "no events here"},
        "ways": {},
    }


@pytest.mark.usefixtures("pretend")
@pytest.mark.parametrize(
    ("subject", "error"),
    [
        ("backend:pretend:Bad", "OSError: no such device"),
        ("backend:pretend:Crash", "exit status 7: it said nothing"),
        (
            "backend:pretend:None",
            "backend 'pretend:None' cannot be loaded from 'pretend:None': module 'pretend' has no attribute 'None'",
        ),
        (
            "framework:pretend_not_there",
            "unknown backend 'pretend_not_there'; known: torch, jax, or a dotted path 'pkg.mod:attr', or for tests: strict",
        ),
    ],
)
def test_what_goes_wrong_is_an_answer(subject: str, error: str) -> None:
    assert survey.ask(subject) == {"error": error}


@pytest.mark.slow
@pytest.mark.usefixtures("pretend")
def test_a_hang_is_an_answer() -> None:
    assert survey.ask("backend:pretend:Hang", timeout=0.5) == {"error": "no answer within 0.5 s"}


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_framework_tells_its_devices(framework: str) -> None:
    pytest.importorskip(framework, reason=f"{framework} is not installed")
    answer = survey.ask(f"framework:{framework}")
    assert answer["error"] is None
    assert {"cpu"} <= {device["platform"] for device in answer["devices"]}
    assert {device["framework"] for device in answer["devices"]} == {framework}
