"""The pages that nothing executes: commands and imports in them exist, their scenarios have the verdict that they say."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse

import pytest
import typer.main

from warfence.cli.app import build_app
from warfence.cli.lazy import commands_of
from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.parse import parse

ROOT = Path(__file__).parents[2]
WRITTEN = [p for p in sorted((ROOT / "docs").rglob("*.md")) if not {"_build", "results", "scenarios"} & {*p.parts}]
LESSONS = [p for p in WRITTEN if p.parent.name == "lessons" and p.name[0].isdigit()]
WARFENCE = re.compile(r"^\$ (?:[A-Z_]+=\S+ )?(?:python -m )?warfence (.*?)(?:\s+#.*)?$", re.MULTILINE)
APP = typer.main.get_command(build_app())


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """(page, text) of each fenced block of that language, in docs and README."""
    for page in (*WRITTEN, ROOT / "README.md"):
        for text in re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
            yield str(page.relative_to(ROOT)), text


COMMANDS = sorted({found for _, text in blocks("console") for found in WARFENCE.findall(text)})
PYTHON = list(blocks("python"))
SCENARIOS = [text for _, text in blocks("text") if text.startswith("scenario ")]


def test_there_is_something_to_check() -> None:
    assert len(COMMANDS) > 30
    assert len(LESSONS) == 11
    assert PYTHON
    assert SCENARIOS


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_on_a_page_has_the_options_that_it_shows(line: str) -> None:
    command, words = APP, shlex.split(line)
    while words and hasattr(command, "commands") and words[0] in command.commands:
        command = commands_of(command)[words.pop(0)]
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}
    assert {word for word in words if word.startswith("--")} <= known
    assert words != [line.split()[0], *words[1:]], f"no command of that name: {line}"


@pytest.mark.parametrize(("page", "code"), PYTHON)
def test_every_import_on_a_page_can_be_imported(page: str, code: str) -> None:
    for node in ast.walk(ast.parse(code, page)):
        if isinstance(node, ast.ImportFrom):
            assert node.module
            module = importlib.import_module(node.module)
            assert all(hasattr(module, name.name) for name in node.names), f"{page}: {ast.unparse(node)}"


@pytest.mark.parametrize("text", SCENARIOS)
def test_every_scenario_on_a_page_has_its_verdict(text: str) -> None:
    scenario = parse(text)
    assert explore(scenario).verdict == scenario.expect


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_links_to_other_sites_are_whole(page: Path) -> None:
    for link in re.findall(r"\]\((https?:[^)\s]*)\)", page.read_text("utf-8")):
        parts = urlparse(link)
        assert (parts.scheme, parts.netloc) == ("https", "github.com"), link
        assert re.fullmatch(r"/[\w.-]+/[\w.-]+/(?:(?:pull|issues)/\d+|blob/main/\S+)", parts.path), link


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda p: p.stem)
def test_a_lesson_asks_answers_in_a_sentence_and_ends_in_two_solved_exercises(lesson: Path) -> None:
    text = lesson.read_text("utf-8")
    said, exercises = text.split("\n## Exercises\n")
    assert re.search(r"^# \d+\. .*\n\n\*[^*]*\?", said, re.MULTILINE)
    assert said.count(":::{admonition} In one sentence\n") == 1
    assert ":tags: [hide-cell]" not in said
    cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert all(len([line for line in cell.splitlines() if line.strip()]) <= 20 for cell in cells)
    solutions = [cell for cell in cells if ":tags: [hide-cell]" in cell]
    assert len(solutions) == 2
    assert all("assert " in cell for cell in solutions)
    assert re.findall(r"^\*\*(\d)\.\*\*", exercises, re.MULTILINE) == ["1", "2"]
