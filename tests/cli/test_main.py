"""How the command line ends: exit statuses, and one line for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from warfence import __version__
from warfence.cli import app, main
from warfence.cli.exits import CheckFailed, Interrupted
from warfence.cli.lazy import commands_of
from warfence.core.errors import FenceError, InputError, StageError


def _failing_app(monkeypatch: pytest.MonkeyPatch, problem: BaseException) -> None:
    def run(**_: object) -> None:
        raise problem

    monkeypatch.setattr(app, "build_app", lambda: run)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


def test_bad_input_is_one_line_and_two(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _failing_app(monkeypatch, InputError("no such file: a.csv;\n  give a trace"))
    assert main([]) == 2
    streams = capsys.readouterr()
    assert (streams.out, streams.err) == ("", "error: no such file: a.csv; give a trace\n")


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    _failing_app(monkeypatch, FenceError("launch 3: a foreign ticket"))
    with pytest.raises(FenceError, match="foreign"):
        main([])


def test_an_interrupt_is_one_line_and_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _failing_app(monkeypatch, KeyboardInterrupt())
    assert main([]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_interrupt_inside_a_command_is_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from warfence.cli import doctor

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "report", interrupt)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("arguments", [["no-such-command"], ["doctor", "--no-such-option"], ["doctor", "surplus"]])
def test_wrong_usage_is_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert "Traceback" not in streams.err


@pytest.mark.slow
def test_a_bare_checkout_runs(tmp_path: Path) -> None:
    """From a folder of its own, with no installation in reach of the import system but the dependencies."""
    root = Path(__file__).resolve().parents[2]
    (tmp_path / "warfence").symlink_to(root / "warfence")
    script = (
        "import sys, runpy, importlib.metadata as metadata;"
        "metadata.entry_points = lambda **_: metadata.EntryPoints();"
        "sys.argv = ['warfence', '--version'];"
        "runpy.run_module('warfence', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{__version__}\n"), done.stderr


def test_json_is_one_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from warfence.cli import survey

    monkeypatch.setattr(survey, "ask", lambda subject: {"error": "not asked"})
    assert main(["backends", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)["backends"]][:2] == ["torch", "jax"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-command"], "error: No such command 'no-such-command'; see warfence --help\n"),
        (["doctor", "surplus"], "error: Got unexpected extra argument(s) (surplus); see warfence doctor --help\n"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.replace("argument (", "argument(s) (") == message


def test_the_list_says_of_each_command_what_the_command_says_of_itself() -> None:
    said = {name: command.help for name, command in commands_of(typer.main.get_command(app.build_app())).items()}
    assert {name: " ".join(text.split("\n\n")[0].split()) for name, text in said.items()} == app.COMMANDS


def test_help_of_a_command_is_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends", "-h"]) == 0
    out = capsys.readouterr().out
    assert "warfence backends [OPTIONS] COMMAND" in out
    assert "Say which methods of a backend are still to write." in out


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "warfence demo" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("problem", "status", "line"),
    [
        (CheckFailed("it does not hold"), 1, "error: it does not hold\n"),
        (StageError(3, "logits", ValueError("no")), 1, "error: launch 3, stage 'logits': ValueError: no\n"),
        (Interrupted("2 of 6 had finished"), 130, "interrupted: 2 of 6 had finished\n"),
    ],
)
def test_what_ends_a_command_early_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], problem: Exception, status: int, line: str
) -> None:
    _failing_app(monkeypatch, problem)
    assert main([]) == status
    assert capsys.readouterr().err == line
