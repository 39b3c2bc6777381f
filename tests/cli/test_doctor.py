"""`warfence doctor`: what it finds, what it advises, and how it ends."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from warfence.cli import doctor, environment, main, packages, survey
from warfence.cli.packages import Package

PYPROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())
CPU = {"framework": "torch", "platform": "cpu", "name": "2 threads"}
GPU = {"framework": "torch", "platform": "cuda", "name": "a GPU"}
JAX_CPU = {"framework": "jax", "platform": "cpu", "name": "cpu"}


WAYS = {"word": "", "node": "this device has no graphs"}


@pytest.fixture
def both_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two frameworks that start on CPU, without starting them."""
    answers = {"framework:torch": [CPU], "framework:jax": [JAX_CPU]}
    monkeypatch.setattr(
        survey, "ask", lambda subject: {"error": None, "devices": answers.get(subject, []), "ways": WAYS}
    )
    monkeypatch.setattr(packages, "_version", lambda name: "9999.0")


def test_the_requirements_are_those_of_pyproject() -> None:
    project = PYPROJECT["project"]
    stated = {"core": project["dependencies"], **project["optional-dependencies"]}
    assert {extra: list(lines) for extra, lines in packages.requirements().items()} == stated


@pytest.mark.usefixtures("both_start")
def test_json_holds_everything(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("JAX_DEBUG_NANS", "1")
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["devices"] == [CPU, JAX_CPU]
    assert (found["broken"], found["advice"], found["usable"]) == ({}, [], True)
    assert {
        "name": "torch",
        "extra": "torch",
        "requirement": "torch>=2.8",
        "version": "9999.0",
        "status": "ok",
    } in found["packages"]
    values = {variable["name"]: variable["value"] for variable in found["environment"]}
    assert values["JAX_DEBUG_NANS"] == "1"
    assert set(values) == {variable.name for variable in environment.variables()}


@pytest.mark.usefixtures("both_start")
def test_the_ways_that_a_machine_has_are_told_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert ": word\n      no node: this device has no graphs" in printed


@pytest.mark.usefixtures("both_start")
def test_people_read_the_same(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "CUDA_LAUNCH_BLOCKING = 1" in text
    assert "XLA_FLAGS is not set" in text
    assert re.search(r"torch\W+9999\.0\W+ok", text)
    assert text.endswith("A backend can run here.\n")


def test_a_missing_framework_is_named_with_its_pip_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing(subject: str) -> Any:
        raise AssertionError(f"asked {subject}, which is not installed")

    monkeypatch.setattr(survey, "ask", nothing)
    monkeypatch.setattr(packages, "_version", lambda name: None if name in ("torch", "jax", "jaxlib") else "9999.0")
    assert main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["advice"] == ["torch: pip install 'torch>=2.8'", "jax: pip install 'jax>=0.10' 'jaxlib'"]
    assert not found["usable"]


def test_a_framework_that_does_not_start_is_broken_not_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(survey, "ask", lambda subject: {"error": "ImportError: libfoo.so"})
    monkeypatch.setattr(packages, "_version", lambda name: "9999.0")
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "torch is installed but does not start: ImportError: libfoo.so" in text
    assert text.endswith("No backend can run here: install torch or jax.\n")


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("2.8", "ok"),
        ("2.8.0", "ok"),
        ("2.13.0+cpu", "ok"),
        ("2.8.0a0+git1", "ok"),
        ("2.7.9", "too old"),
        (None, "missing"),
    ],
)
def test_status(version: str | None, status: str) -> None:
    assert Package("torch", "torch", "torch>=2.8", version).status == status


def test_a_bound_with_zeros_is_met_by_the_short_version() -> None:
    assert Package("p", "core", "p>=2.0", "2").status == "ok"
    assert Package("p", "core", "p", "0.0.1").status == "ok"


def test_cuda_packages_are_advised_only_where_there_is_a_gpu() -> None:
    lacking = [Package("cuda-bindings", "cuda", "cuda-bindings>=13,<14", None)]
    assert doctor.advice(lacking, [CPU, JAX_CPU]) == []
    assert doctor.advice(lacking, [CPU, GPU]) == ["cuda: pip install 'cuda-bindings>=13,<14'"]


def test_a_jax_without_the_gpu_that_torch_sees_is_told() -> None:
    assert doctor.advice([], [CPU, GPU, JAX_CPU]) == [
        "jax sees no GPU although torch does: pip install 'jax[cuda13]'",
    ]


def test_every_variable_is_explained_in_one_line() -> None:
    assert len({variable.name for variable in environment.variables()}) == len(environment.variables())
    for variable in environment.variables():
        assert variable.effect
        assert "\n" not in variable.effect
    found = {one["name"]: one["value"] for one in environment.survey({"XLA_FLAGS": ""})}
    assert (found["XLA_FLAGS"], found["OMP_NUM_THREADS"]) == ("", None)
