"""`warfence serve --spec`, `--fence self`, `--mixed` and `--idle` on the strict backend: what is said, and no token changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serve.jobs.conftest import STRICT
from warfence.cli import main

Serve = Callable[..., dict[str, Any]]
pytestmark = pytest.mark.slow


@pytest.fixture
def command(tiny: Path, prompts: Path, drafts: dict[str, Path]) -> Callable[..., list[str]]:
    """The command line on the tiny model; an algorithm that needs a draft gets a random one."""

    def made(spec: str, *arguments: object) -> list[str]:
        draft = ("--draft", drafts[spec]) if spec in drafts else ()
        tiny_run = ("serve", "--backend", STRICT, "--model", tiny, "--prompts", prompts, "--rows", 3)
        return [str(a) for a in (*tiny_run, "--max-new-tokens", 12, "--spec", spec, *draft, *arguments)]

    return made


@pytest.fixture
def serve(command: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> Serve:
    def run(spec: str, *arguments: object) -> dict[str, Any]:
        assert main([*command(spec, *arguments), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def plain(serve: Serve) -> dict[str, Any]:
    return serve("none")


@pytest.mark.parametrize(
    ("spec", "block", "fine", "launched"),
    [
        ("ngram", 6, (), ("extend", "target_verify")),  # reads on behind the verify, so it publishes nothing
        ("ngram-snapshot", 6, ("target_verify",), ("extend", "target_verify")),  # takes the verify's own page table
        ("dflash", 4, ("target_verify",), ("extend", "target_verify")),
        (
            "eagle",
            4,
            ("extend", "target_verify"),
            ("extend", "target_verify", "draft_extend"),
        ),  # the draft ends every step
    ],
)
def test_the_tokens_are_those_without_and_the_report_says_how(
    serve: Serve, plain: dict[str, Any], spec: str, block: int, fine: tuple[str, ...], launched: tuple[str, ...]
) -> None:
    found = serve(spec)
    assert found["tokens_sha256"] == plain["tokens_sha256"]
    said = found["spec"]
    assert set(said) == {"name", "block", "verify_rows", "accepted_tokens", "tokens_per_verify", "fallbacks"}
    assert (said["name"], said["block"], said["fallbacks"]) == (spec, block, 0)
    assert said["tokens_per_verify"] == said["accepted_tokens"] / said["verify_rows"] >= 1
    assert found["steps_by_mode"]["target_verify"] > 0
    assert found["barriers"]["fine"] == sum(found["steps_by_mode"][mode] for mode in fine)
    assert found["tokens_per_step"] == found["generated_tokens"] / found["steps"]
    assert found["happened"]["slots_returned"] > 0
    assert found["device_s_by_mode"] == dict.fromkeys(launched, None), "virtual time is no time"


def test_without_speculation_the_report_says_so(plain: dict[str, Any]) -> None:
    assert plain["spec"] == {
        "name": "none", "block": None, "verify_rows": 0, "accepted_tokens": 0, "tokens_per_verify": None, "fallbacks": 0,
    }  # fmt: skip
    assert plain["happened"]["slots_returned"] == 0


def test_sampling_is_the_same_too(serve: Serve) -> None:
    drawn = ("--temperature", 0.9, "--top-p", 0.9, "--seed", 3)
    assert serve("none", *drawn)["tokens_sha256"] == serve("ngram", *drawn)["tokens_sha256"]


def test_too_few_slots_fall_back_to_plain_steps(serve: Serve, plain: dict[str, Any]) -> None:
    found = serve("ngram", "--slots", 40)
    assert found["limits"]["slots"] == 40
    assert found["spec"]["fallbacks"] > 0
    assert found["steps_by_mode"]["decode"] > 0
    assert found["tokens_sha256"] == plain["tokens_sha256"]


@pytest.mark.parametrize("spec", ["none", "eagle"])
def test_the_self_fence_blocks_the_host(serve: Serve, plain: dict[str, Any], spec: str) -> None:
    found = serve(spec, "--fence", "self")
    assert found["fence"] == "self"
    assert found["barriers"] == {"fine": 0, "coarse": 0, "off": 0, "host": found["steps"]}
    assert found["tokens_sha256"] == plain["tokens_sha256"]


@pytest.mark.parametrize(("option", "mode"), [("--mixed", "mixed"), ("--idle", "idle")])
def test_mixed_and_idle_batches(serve: Serve, plain: dict[str, Any], option: str, mode: str) -> None:
    """Six rows: more than one prefill batch takes, so the second one has riders."""
    found = serve("none", option, "--rows", 6)
    assert found["steps_by_mode"][mode] > 0
    assert found["tokens_sha256"] == plain["tokens_sha256"]


@pytest.mark.parametrize("spec", ["ngram", "dflash", "eagle"])
def test_mixed_batches_between_verifies(serve: Serve, plain: dict[str, Any], spec: str) -> None:
    found = serve(spec, "--mixed", "--rows", 6)
    assert found["steps_by_mode"]["mixed"] > 0
    assert found["steps_by_mode"]["target_verify"] > 0
    assert found["tokens_sha256"] == plain["tokens_sha256"]


def test_idle_batches_between_verifies(serve: Serve, plain: dict[str, Any]) -> None:
    found = serve("eagle", "--idle")
    assert found["steps_by_mode"]["idle"] > 0
    assert found["tokens_sha256"] == plain["tokens_sha256"]


@pytest.mark.parametrize("spec", ["ngram", "dflash", "eagle"])
def test_without_a_fence_a_verify_reads_wrong_tables(serve: Serve, plain: dict[str, Any], spec: str) -> None:
    found = serve(spec, "--fence", "off", "--allow-hazard")
    assert found["hazard"]["differs"]
    assert found["hazard"]["forced_order"] == {"landed_before_read": found["steps"], "waited": 0}
    assert found["steps_by_mode"]["target_verify"] > 0
    assert found["tokens_sha256"] != plain["tokens_sha256"]


def test_people_read_what_the_proposals_brought(
    command: Callable[..., list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert main(command("ngram", "--slots", 40, "--fence", "self")) == 0
    out = capsys.readouterr().out
    assert ", fence self, attention captured, ngram in blocks of 6.\n" in out
    for expected in (
        "speculation", "ngram, block 6: ", " tokens a verify", " plain steps, for want of slots", "slots returned",
        "host: the host itself waited for the whole forward, the older way", "and its waits at the fence",
    ):  # fmt: skip
        assert expected in out
    assert main(command("none")) == 0
    out = capsys.readouterr().out
    assert "while the model runs" in out
    for absent in ("speculation", "slots returned", "on the forward lane"):
        assert absent not in out


def test_bad_input_is_one_line_and_two(
    command: Callable[..., list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warfence.serve.jobs.session.open_backend", lambda *_: pytest.fail("a backend was started"))
    for arguments, message in (
        (
            command("medusa"),
            "unknown speculative algorithm 'medusa'; known: none, ngram, ngram-snapshot, dflash, eagle",
        ),
        (command("none", "--block", 4), "--block is of speculation, and --spec is 'none'; add --spec, or drop --block"),
        (
            command("none", "--draft", "d"),
            "--draft is of speculation, and --spec is 'none'; add --spec, or drop --draft",
        ),
        (command("dflash", "--block", 5), "--block is 5; this draft fills blocks of 4"),
        (command("ngram", "--slots", 10), "tokens + 12 new tokens"),
    ):
        assert main(arguments) == 2
        streams = capsys.readouterr()
        assert streams.err.startswith("error: ")
        assert message in streams.err
        assert (streams.out, streams.err.count("\n")) == ("", 1)
