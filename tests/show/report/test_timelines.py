"""The picture of a step: what of each backend is in it, and a backend that is not says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.show.report.conftest import step
from warfence.show.report import timelines
from warfence.show.report.timelines import picture, step_picture


def test_one_above_the_other_with_numbers() -> None:
    made = picture([step("torch"), step("jax")], {})
    assert made.svg.index("torch on cpu</text>") < made.svg.index("jax on cpu</text>")
    assert [(row.title, row.told.reads_end, row.told.over) for row in made.rows] == [
        ("torch on cpu", 10.0, 50.0),
        ("jax on cpu", 10.0, 50.0),
    ]
    assert made.notes[0] == "torch on cpu: a slice is a stage; the clock is made up"


def test_a_backend_that_cannot_be_traced_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(options: timelines.ServeOptions, steps: int) -> object:
        raise RuntimeError(f"{options.backend} burns")

    assert "no.such" in step_picture({"gone": "no.such:thing"}, "cpu").missing["gone"]
    monkeypatch.setattr(timelines, "trace_steps", broken)
    made = step_picture({"a": "pkg:A"}, "cpu")
    assert (made.svg, made.rows) == ("", [])
    assert "pkg:A burns" in made.missing["a"]


def test_a_step_without_a_boundary_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "trace_steps", lambda options, steps: replace(step("a"), marks=()))
    monkeypatch.setattr(timelines, "first_step", lambda timeline: timeline)
    assert step_picture({"a": "pkg:A"}, "cpu").missing == {"a": "no read boundary was seen"}
