"""A small report with one of everything, and the page that is made of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.show.report.madeup import BACKENDS, made_up
from warfence.bench.document import Environment
from warfence.parity.cells import matrix
from warfence.parity.probe import Release
from warfence.parity.report import LawEntry, MutantEntry, Report
from warfence.parity.small import small_model
from warfence.races.scenarios.groups import Group, entry
from warfence.races.scenarios.library import find
from warfence.serve.model.config import ModelConfig
from warfence.show.report.contents import Contents
from warfence.show.report.figures import Bench, Figure
from warfence.show.report.page import page
from warfence.show.report.timelines import picture
from warfence.show.timeline.model import Mark, Slice, Timeline

SOME = ("decode", "idle"), ("captured", "live")


@pytest.fixture(scope="session")
def config() -> ModelConfig:
    return small_model().config


@pytest.fixture(scope="session")
def report(config: ModelConfig) -> Report:
    """decode / captured / fine with marker is UNSOUND on jax, decode / live is skipped in one cell, and fails in another."""
    made = made_up(matrix(*SOME), config)
    early, failed = made.cells[0], next(e for e in made.cells if e.result.cell.attention == "live")
    early.result.release["jax"] = Release("page_table", "page_table")
    early.result.sound = early.result.parity = early.result.as_expected = False
    made.cells[0] = replace(early, status="failed")
    at = made.cells.index(failed)
    failed.result.fail("torch", "launch 3: a <message>")
    made.cells[at] = replace(failed, status="failed")
    last = made.cells[-1]
    last.result.release.clear()
    made.cells[-1] = replace(last, status="skipped", reason="slow here")
    made.laws.append(LawEntry("torch", "3-x", "A third.", "broken", "seen", "xfailed", "a known bug"))
    made.mutants.append(MutantEntry("torch", "late", "3-x", caught=False, caught_by=(), right_law=False, message=""))
    made.warnings.append("no cell is called <so>")
    return made


@pytest.fixture(scope="session")
def contents(report: Report) -> Contents:
    return Contents(
        report,
        about=Environment(
            date="2026-01-02", command="warfence report <OUT>", machine="x86_64", system="Linux", cpus=2,
            devices=[{"platform": "cuda", "name": "a GPU"}], versions={"torch": "2"}, variables={"XLA_FLAGS": "-x"},
        ),
        timeline=picture([step(name) for name in BACKENDS], {"strict": "it has no clock"}),
        catalogue=[Group("owner", [entry(find("owner-moves")), entry(find("owner-moves-fixed"))])],
        benches=[Bench("a.json", Environment("d", "c", "m", "s", 1, [], {}, {}), [Figure("f", "data:,")], [], [])],
    )  # fmt: skip


@pytest.fixture(scope="session")
def html(contents: Contents) -> str:
    return page(contents)


@pytest.fixture(scope="session")
def html_file(html: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


def step(name: str) -> Timeline:
    """A launch that reads until 10 and runs until 50."""
    slices = (
        Slice("forward", "page_table", 0.0, 10.0, "stage", 1, ("req_to_token",), stages=("page_table",)),
        Slice("forward", "layer.0", 10.0, 50.0, "stage", 1, stages=("layer.0",)),
        Slice("schedule", "write req_to_token", 12.0, 14.0, "write", writes=("req_to_token",)),
    )
    marks = (Mark("forward", 10.0, "read boundary", 1),)
    about = {"slice": "a stage", "clock": "made up"}
    return Timeline(f"{name} on cpu", about, "us", 0, ("schedule", "forward"), slices, marks=marks)
