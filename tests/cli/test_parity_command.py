"""`warfence parity` on the strict reference backend: what it prints and writes, its exit statuses, and bad input."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

from warfence import backends
from warfence.cli import contenders, main

FEW = ("parity", "--backend", "strict", "--mode", "decode", "--attention", "captured", "--quick")
NO_LAWS = (*FEW, "--no-laws")
pytestmark = pytest.mark.slow
LIARS = '''
"""Backends that do not keep what they promise."""
from dataclasses import replace
from warfence.parity.strict.backend import StrictBackend


class Unmarked(StrictBackend):
    name = "unmarked"

    def compile(self, program, *, marker_after=None, gated=False):
        return super().compile(program, gated=gated)


class Twin(StrictBackend):
    """Its name is taken."""


class NeverStarts:
    name = "stillborn"

    def __init__(self, device):
        raise RuntimeError("no such driver")
'''


@pytest.fixture
def liars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The module's name, in a directory of its own, where the command runs."""
    (tmp_path / "liars.py").write_text(LIARS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "liars"


def test_people_read_one_table_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FEW, "--mutants", "--attention", "snapshot"]) == 0
    streams = capsys.readouterr()
    assert streams.err == ""
    lines = [" ".join(line.split()) for line in streams.out.splitlines()]
    for expected in (
        "Where a table write lands, on strict (cpu): 12 cells",
        "captured swa_translate = sample end - - ✓ 4",
        "snapshot swa_translate = = end - - ✓ 4",
        "strict, in 4 cells: tables are written in place; only the fence protects them",
        "Laws on strict: 16 of 16 held",
    ):
        assert expected in lines
    assert "caught by the law that forbids them" in streams.out
    assert lines[-1].startswith("8 cells on strict are as the rules say; ")


def test_two_backends_are_compared_and_named_apart(capsys: pytest.CaptureFixture[str], liars: str) -> None:
    assert main([*NO_LAWS, "--backend", f"{liars}:Twin"]) == 0
    assert "parity: strict and liars:Twin release at the same stage in all 4 cells compared" in capsys.readouterr().out


def test_json_to_stdout_is_alone_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*NO_LAWS, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert found["backends"]["strict"]["device"] == "cpu"
    assert found["backends"]["strict"]["capabilities"]["gates"] is True
    assert {cell["status"] for cell in found["cells"]} == {"passed", "not applicable"}
    assert {"warfence", "python", "numpy"} <= set(found["versions"])
    assert found["devices"][0]["platform"] == "cpu"


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = {kind: tmp_path / f"out.{kind}" for kind in ("json", "junit", "html")}
    assert main([*NO_LAWS, *(word for kind, path in paths.items() for word in (f"--{kind}", str(path)))]) == 0
    assert len(json.loads(paths["json"].read_text())["cells"]) == 6
    assert parse(paths["junit"]).getroot().get("tests") == "6"
    assert paths["html"].read_text().startswith("<!doctype html>")
    assert capsys.readouterr().out.count("Written: ") == 3


def test_a_lie_fails_with_a_sentence_and_one(capsys: pytest.CaptureFixture[str], liars: str) -> None:
    assert main([*NO_LAWS, "--backend", f"{liars}:Unmarked"]) == 1
    streams = capsys.readouterr()
    assert "✗ decode / captured / marker / fine / batch 1: nothing measured on unmarked" in streams.out
    assert "the backend declares external_markers, but 'decode/captured/1x1' compiled with marker_after=" in streams.out
    assert "strict: = / unmarked: error" not in streams.out
    assert streams.err == "error: no parity: 2 cells failed\n"


def test_a_backend_that_does_not_start_is_told_once(capsys: pytest.CaptureFixture[str], liars: str) -> None:
    assert main([*FEW, "--backend", f"{liars}:NeverStarts"]) == 1
    streams = capsys.readouterr()
    assert streams.out.count("it does not start: RuntimeError: no such driver (liars.py, line ") == 1
    assert "    The same: decode / captured / marker / coarse / batch 1; " in streams.out
    assert "    The same: 2-release-at-boundary; " in streams.out
    assert streams.err == "error: no parity: 6 cells, 16 laws failed; nothing was measured on stillborn\n"


def test_skips_and_expected_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skips, xfails, out = tmp_path / "skips.txt", tmp_path / "xfails.txt", tmp_path / "out.json"
    skips.write_text("decode / captured / marker / coarse / *  # not today\n15-tokens # slow\n15-token\n")
    xfails.write_text("decode / captured / marker / fine / batch 1 # a driver bug\n7-mailbox-emptied # too\n")
    assert main([*FEW, "--skips-file", str(skips), "--xfails-file", str(xfails), "--json", str(out)]) == 1
    streams = capsys.readouterr()
    assert "warning: skips.txt, line 3: '15-token' matches nothing; nearest: '15-tokens'\n" in streams.out
    assert "expected to fail (a driver bug), and passes: delete the line from the xfails file" in streams.out
    assert "Laws on strict: 15 of 16 held; 15-tokens not run (slow)\n" in streams.out
    assert streams.err == "error: no parity: 1 cell, 1 law failed\n"
    assert [cell["status"] for cell in json.loads(out.read_text())["cells"]] == [
        "xpassed", "skipped", "not applicable", "passed", "passed", "not applicable",
    ]  # fmt: skip


def test_an_expected_failure_that_fails_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], liars: str
) -> None:
    xfails = tmp_path / "xfails.txt"
    xfails.write_text("decode / captured / marker / * # it plants nothing\n")
    command = [*NO_LAWS, "--backend", f"{liars}:Unmarked", "--xfails-file", str(xfails)]
    skips = tmp_path / "skips.txt"
    skips.write_text("* / donation / * # measured nowhere\n")
    assert main([*command, "--skips-file", str(skips)]) == 0
    assert "✓ 2, 2 skipped, 2 xfailed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode", "decod"], "unknown mode 'decod'; nearest: decode"),
        (["--attention", "capture"], "unknown attention backend 'capture'; nearest: captured"),
        (["--backend", "torhc"], "unknown backend 'torhc'; nearest: torch; or give a dotted path 'pkg.mod:attr'"),
        (
            ["--backend", "no_such.module:X"],
            "backend 'no_such.module:X' cannot be loaded from 'no_such.module:X': No module",
        ),
        (["--device", "moon"], "backend strict: unknown device 'moon'; it has only: cpu"),
        (
            ["--json", "no/such/folder.json"],
            "--json 'no/such/folder.json': no file can be written there; give one in a folder",
        ),
        (["--skips-file", "absent.txt"], "'absent.txt' cannot be read (No such file or directory)"),
    ],
)
def test_bad_input_is_one_line_and_two(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*NO_LAWS, *arguments]) == 2
    streams = capsys.readouterr()
    assert f"error: {message}" in streams.err
    assert streams.err.count("\n") == 1


def test_by_default_what_is_installed_is_run_and_the_rest_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    strict = backends.REFERENCE["strict"].factory
    both = {name: replace(one, factory=strict) for name, one in backends.available().items()}
    monkeypatch.setattr(backends, "available", lambda: both)
    monkeypatch.setattr(backends, "find_spec", lambda name: object() if name == "torch" else None)
    few = [word for word in NO_LAWS if word not in ("--backend", "strict")]
    assert main(few) == 0
    text = capsys.readouterr().out
    assert "jax is not installed here and is left out: pip install 'warfence[jax]'" in text
    assert "on torch (cpu)" in text
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    assert main(few) == 2
    assert "error: no backend is installed; do one of: " in capsys.readouterr().err


@pytest.mark.parametrize(("before", "after"), [(None, "1"), ("3", "3")])
def test_one_thread_an_operation_unless_somebody_said_otherwise(
    monkeypatch: pytest.MonkeyPatch, before: str | None, after: str
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", before or "")  # so that it is put back afterwards
    if before is None:
        monkeypatch.delenv("OMP_NUM_THREADS")
    contenders.contenders(["strict"], "cpu")
    assert os.environ["OMP_NUM_THREADS"] == after
