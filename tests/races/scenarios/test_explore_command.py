"""`warfence explore`: what it prints, and its exit status."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from warfence.cli import main
from warfence.races.scenarios.library import find
from warfence.races.scenarios.text import text


@pytest.fixture(autouse=True, scope="module")
def _command_is_imported() -> None:
    """Or the first test would be charged with it."""
    import_module("warfence.cli.explore")


@pytest.mark.slow
def test_a_name_of_the_catalogue_is_explored_with_its_witness(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "in-graph-late-read"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("in-graph-late-read: bad, as expected\n")
    assert "the repaired program was explored: ok" in out


def test_a_file_whose_verdict_is_not_expected_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.scenario"
    file.write_text(text(find("no-fence")).replace("expect   bad", "expect   ok"))
    assert main(["explore", str(file)]) == 1
    assert "no-fence: bad, NOT as expected, which is ok" in capsys.readouterr().out


def test_a_parameter_is_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "staging-ring", "--set", "D=4", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["outcomes"][0]["verdict"] == "ok"


@pytest.mark.slow
def test_the_catalogue_as_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--catalogue", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["scenarios"] == document["as_expected"] == len(document["outcomes"])
    assert (document["recall"], document["precision"]) == (1.0, 1.0)
    late = next(one for one in document["outcomes"] if one["id"] == "in-graph-late-read")
    assert late["witness"]["pair"] == [2, 4]
    assert late["witness"]["order"] == [0, 1, 3, 4, 2]
    assert "schedule waits fence" in late["repair"]["text"]


@pytest.mark.slow
def test_the_catalogue_as_a_table_and_as_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--catalogue", "--pages", str(tmp_path / "pages")]) == 0
    assert "verdicts as expected, 0 not" in capsys.readouterr().out
    assert (tmp_path / "pages" / "fence-too-early.md").is_file()


def test_a_file_is_written_in_its_normal_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.scenario"
    file.write_text(text(find("no-fence")).replace("    reads t[3]", "reads  t[ 3 ]"))
    assert main(["explore", str(file), "--text"]) == 0
    assert capsys.readouterr().out == text(find("no-fence"))
    assert main(["explore", str(file), "--format"]) == 0
    assert file.read_text() == text(find("no-fence"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "neither a file nor --catalogue; give one of the two"),
        (["coarse", "--catalogue"], "a file and --catalogue; give one of the two"),
        (["corse"], "no scenario 'corse' in the catalogue; did you mean 'coarse'?"),
        (["nowhere.scenario"], "nowhere.scenario cannot be read (No such file or directory); give a .scenario file"),
        (["coarse", "--set", "N"], "--set 'N'; give a parameter and a whole number, such as --set N=5"),
        (["coarse", "--pages", "x"], "--pages is for the whole catalogue; give --catalogue, too"),
        (["coarse", "--format"], "--format writes a file; 'coarse' is a scenario of the catalogue"),
        (["--catalogue", "--text"], "--text is for one file; give a file"),
    ],
)
def test_a_wrong_call_exits_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", *arguments]) == 2
    assert message in capsys.readouterr().err
