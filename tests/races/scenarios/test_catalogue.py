"""The catalogue: every verdict, every fixed twin, the checker's view of each program, and the pages made from it."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from warfence.races.check.findings import check
from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.library import catalogue, find
from warfence.races.scenarios.log import log
from warfence.races.scenarios.pages import pages
from warfence.races.scenarios.program import GROUPS, Declare, Scenario, Thread
from warfence.races.scenarios.repair import repair
from warfence.races.scenarios.text import text

DOCS = Path(__file__).resolve().parents[3] / "docs" / "scenarios"
REPORTED = """
coarse no-fence pre-snapshot pre-reread in-graph in-graph-late-read post barrier-at-loop-top barrier-after-launch
wrong-owner plan-lane plan-lane-inherits re-record block-lifetime block-kept kv-reuse kv-backup state-snapshot host-staging
host-staging-fenced ring-stream-wait wait-cycle stale-static fence-before-last-reader out-of-region bypass alias alias-copied
double-donation donation-hold donation-refused zombie-row zeroing wrong-stream view host-query wrapper marker-missing
failed-snapshot
"""
FINDINGS = {"bad": "race", "cycle": "wait-cycle", "over": "over-fencing"}
NO_WAIT_REPAIRS = {"stale-static", "unlocked-writer"}


def plain(scenario: Scenario) -> bool:
    """Whether an event log says everything: one host thread, no handles, no read that names a launch."""
    return scenario.id != "stale-static" and not any(
        isinstance(one, Thread) or (isinstance(one, Declare) and one.kind == "array") for one in scenario.body
    )


@pytest.mark.parametrize("scenario", catalogue(), ids=lambda one: one.id)
def test_the_verdict_is_as_expected_and_the_checker_agrees(scenario: Scenario) -> None:
    outcome = explore(scenario)
    assert outcome.verdict == scenario.expect
    if plain(scenario) and outcome.verdict != "error":
        kinds = check(log(outcome.trace)).kinds()
        for verdict, kind in FINDINGS.items():
            if verdict != "over" or outcome.verdict != "bad":
                assert (outcome.verdict == verdict) == (kind in kinds)


@pytest.mark.parametrize("scenario", [one for one in catalogue() if one.expect == "bad"], ids=lambda one: one.id)
def test_a_bad_program_is_repaired_by_one_wait_or_says_that_none_does(scenario: Scenario) -> None:
    repaired = repair(explore(scenario))
    if scenario.id in NO_WAIT_REPAIRS:
        assert repaired is None
    else:
        assert (len(repaired.added), repaired.verdict) == (1, "ok")


def test_every_reported_program_is_there_and_more() -> None:
    assert all(find(name) for name in REPORTED.split())
    assert len(catalogue()) >= 60
    assert {one.group for one in catalogue()} == set(GROUPS)


def test_every_wrong_program_has_a_fixed_twin() -> None:
    for scenario in catalogue():
        assert (scenario.expect == "ok") == (not scenario.fixed_by), scenario.id
        assert not scenario.fixed_by or find(scenario.fixed_by).expect == "ok"


def test_the_files_are_in_their_normal_form_and_named_as_what_they_hold() -> None:
    folder = files("warfence.races").joinpath("catalogue")
    for scenario in catalogue():
        assert folder.joinpath(f"{scenario.id}.scenario").read_text("utf-8") == text(scenario)


def test_the_readme_counts_them() -> None:
    assert f"\n{len(catalogue())} programs from the bug reports" in (DOCS.parents[1] / "README.md").read_text("utf-8")


def test_each_sentence_on_what_a_program_means_names_its_programs() -> None:
    page = (DOCS.parent / "concepts" / "what-a-program-means.md").read_text("utf-8")
    said = page.split("\n- **")[1:]
    assert len(said) >= 13
    for sentence in said:
        named = [one for one in re.findall(r"`([a-z-]+)`", sentence) if one != "choose"]
        assert named, sentence
        assert all(find(one) for one in named)


@pytest.mark.slow
def test_the_pages_are_those_that_the_command_makes() -> None:
    made = pages()
    assert {path.name: path.read_text("utf-8") for path in DOCS.glob("*.md")} == made, (
        "run `warfence explore --catalogue --pages docs/scenarios`"
    )
