"""`warfence demo`: what it says with both backends, with one, with none, and when they disagree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from warfence import backends
from warfence.cli import main
from warfence.serve.jobs import demo, divergence
from warfence.serve.jobs.options import ServeOptions
from warfence.serve.requests import Request

pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture
def small(tiny: Path, prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo on the tiny model and six prompts, with three rows."""
    monkeypatch.setattr(demo, "ServeOptions", partial(ServeOptions, model=tiny, prompts=prompts, rows=3))


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(backends, "find_spec", lambda name: object() if name in names else None)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_both_backends_agree_and_the_unfenced_run_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax", reason="jax is not installed")
    assert main(["demo", "--json", "--max-new-tokens", "12"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["missing"] == {}
    assert list(found["backends"]) == ["torch", "jax"]
    assert found["comparison"]["differences"] == []
    assert found["comparison"]["equal"] != bool(found["comparison"]["near_ties"])
    assert found["hazard"]["backend"] == "torch"
    assert found["hazard"]["differs"]


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_people_read_a_story(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "torch")
    assert main(["demo", "--max-new-tokens", "12"]) == 0
    text = capsys.readouterr().out
    assert [c for c in text if ord(c) < 32 and c != "\n"] == []
    for expected in (
        "write-after-read",
        "6 prompts on torch, with the fence. The first 3 texts:",
        "  In the beginning|",
        "jax is not installed here, so there is nothing to compare with: pip install 'warfence[jax]'",
        "of 6 texts are wrong, and no error was raised.",
        " >>> ",
    ):
        assert expected in text


def test_with_neither_backend_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == (
        "error: no backend is installed; do one of: pip install 'warfence[torch]'; pip install 'warfence[jax]'\n"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("margin", "status", "said"), [(1.0, 1, "DIFFERENT"), (1e-6, 0, "near tie (rounding decides)")]
)
def test_a_difference_fails_unless_it_is_a_near_tie(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, margin: float, status: int, said: str
) -> None:
    """A second torch run plays jax, and one of its tokens is said to differ."""
    compare = divergence.differences

    def differ(seen: Sequence[Request], expected: Sequence[Request]) -> list[divergence.Divergence]:
        assert compare(seen, expected) == []
        return [divergence.Divergence(2, 4, expected=5, seen=6, margin=margin)]

    def jobs(names: Sequence[str], new: int) -> dict[str, Any]:
        made = demo.prepare(demo.ServeOptions(max_new_tokens=new))
        return {"torch": made, "jax": made}

    monkeypatch.setattr("warfence.cli.demo.differences", differ)
    monkeypatch.setattr("warfence.cli.demo.jobs", jobs)
    assert main(["demo", "--max-new-tokens", "12"]) == status
    streams = capsys.readouterr()
    assert f"{said}: request 2, token 5, margin {margin:.1e}" in streams.out
    assert streams.err.startswith("error: the backends chose different tokens" if status else "")


def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--max-new-tokens", "0"]) == 2
    assert capsys.readouterr().err == "error: --max-new-tokens is 0; give at least 1\n"
