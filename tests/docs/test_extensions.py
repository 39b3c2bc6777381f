"""The two Sphinx extensions of the docs, without Sphinx building anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXTENSIONS = str(Path(__file__).parents[2] / "docs" / "extensions")


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [EXTENSIONS, *sys.path])


@pytest.mark.parametrize(("line", "shown"), [
    ("takes *args and a|b", r"takes \*args and a\|b"),
    ("`swa_*` stays, name_ does not", r"`swa_*` stays, name\_ does not"),
    ("req_to_token is plain", "req_to_token is plain"),
    ("`Lane`s, and `Lane`.", r"`Lane`\ s, and `Lane`."),
])  # fmt: skip
def test_markup_in_a_docstring_is_literal_outside_of_backticks(line: str, shown: str) -> None:
    from plain_docstrings import escaped

    assert escaped(line) == shown


def test_what_is_indented_becomes_code_and_what_follows_is_prose_again() -> None:
    from plain_docstrings import plain

    assert plain(["Say *it*:", "    p = *x", "Done."]) == [
        r"Say \*it\*:", "", ".. code-block:: text", "", "    p = *x", "", "Done.",
    ]  # fmt: skip


def test_a_field_begins_a_paragraph_and_its_second_line_goes_on() -> None:
    from plain_docstrings import plain

    assert plain(["rows, cells: how many", "there are", "args: *all*"]) == [
        "", "`rows, cells`: how many", "there are", "", r"`args`: \*all\*",
    ]  # fmt: skip


def test_every_command_and_option_is_in_the_reference() -> None:
    import typer.main
    from cli_help import commands, page

    from warfence.cli.app import build_app

    found = dict(commands(typer.main.get_command(build_app()), "warfence"))
    assert {"warfence serve", "warfence backends", "warfence backends new"} <= found.keys()
    serve = page("warfence serve", found["warfence serve"])
    assert serve[0] == "## warfence serve"
    assert "- `--device`: cpu or cuda. Default: cpu." in serve
    assert "*What is served*" in serve
