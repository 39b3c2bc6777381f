"""`warfence boundary`: one cell as a stage list, and a marker that is planted in the wrong place."""

from __future__ import annotations

import json

import pytest

from warfence.cli import main

STRICT = ("boundary", "--backend", "strict")
pytestmark = pytest.mark.slow


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_boundary_and_the_release_are_marked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert main([*STRICT, "--attention", "captured"]) == 0
    assert lines(capsys.readouterr().out) == [
        "decode / captured / marker / fine / batch 1",
        "Policy in_graph: the last read is inside the captured forward and this forward carries the marker.",
        "load_batch",
        "stage_inputs",
        "replay",
        "page_table reads req_to_token",
        "swa_translate reads req_to_token, full_to_swa "
        "<- read boundary; marker; barrier opens (strict); write lands (strict)",
        *("embed", "layer.0", "layer.1", "layer.2", "logits", "sample", "tail", "relay", "end"),
        "read boundary swa_translate, policy in_graph, expected release swa_translate",
        "strict: swa_translate",
    ]


@pytest.mark.parametrize(("attention", "early"), [("captured", "page_table"), ("live", "layer.1")])
def test_a_marker_one_stage_early_is_unsound_and_one(
    attention: str, early: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*STRICT, "--attention", attention, "--marker-after", early]) == 1
    streams = capsys.readouterr()
    assert f"strict: {early}" in lines(streams.out)
    assert streams.err == f"error: decode / {attention} / marker / fine / batch 1: UNSOUND\n"


def test_a_late_marker_is_sound_and_not_where_the_rules_put_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*STRICT, "--marker-after", "logits"]) == 1
    assert "not where the rules put it" in capsys.readouterr().err


def test_where_no_marker_is_waited_for_it_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*STRICT, "--attention", "snapshot", "--marker-after", "layer.0"]) == 0
    assert "--marker-after changes nothing here: policy pre_replay waits for no marker" in capsys.readouterr().out


def test_json_has_the_stages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*STRICT, "--json", "--no-marker", "--batch", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["marker"], found["marker_after"], found["batch"], found["policy"]) == (False, None, 2, "post_replay")
    assert found["stages"][1] == {"name": "page_table", "region": "replay", "reads": ["req_to_token"]}
    assert found["release"] == {"strict": {"opened": "sample", "landed": "sample"}}


def test_without_a_barrier_the_cell_says_why_nothing_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*STRICT, "--fence", "donation"]) == 0
    text = capsys.readouterr().out
    assert "No barrier here" in text
    assert "strict: not measured (tables are written in place; only the fence protects them)" in text


@pytest.mark.parametrize(
    ("mode", "attention", "rules", "policy", "lands"),
    [
        ("decode", "captured", "28363", "pre_replay", "stage_inputs"),
        ("decode", "captured", "34982", "pre_replay", "stage_inputs"),
        ("target_verify+dflash", "live", "34052", "pre_replay", "page_table"),
        ("target_verify+ngram", "rereading", "35059", "post_replay", "ngram_store"),
        ("draft_extend+eagle", "captured", "33587", "pre_replay", "eagle_inputs"),
        ("draft_extend+eagle", "captured", "draft-before", "pre_replay", "eagle_inputs"),
    ],
)
def test_what_a_historical_rule_set_gets_wrong_is_unsound_and_one(
    mode: str, attention: str, rules: str, policy: str, lands: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = (*STRICT, "--mode", mode, "--attention", attention, "--no-marker")
    assert main([*cell, "--rules", rules]) == 1
    streams = capsys.readouterr()
    assert f"Policy {policy} by the rules '{rules}': " in streams.out
    assert f"strict: {lands}" in lines(streams.out)
    assert streams.err == f"error: {mode} / {attention} / no marker / fine / batch 1: UNSOUND\n"
    assert main(cell) == 0, "by our rules"


def test_a_rule_set_that_trusts_any_node_is_unsound_where_reads_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    rereading = (*STRICT, "--attention", "rereading", "--marker-after", "swa_translate.0")
    assert main([*rereading, "--rules", "33587"]) == 1
    streams = capsys.readouterr()
    assert "Policy in_graph by the rules '33587': a node was planted." in lines(streams.out)
    assert streams.err.endswith(": UNSOUND\n")
    assert main(rereading) == 0
    assert "--marker-after changes nothing here: policy post_replay waits for no marker" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mode", "last"),
    [
        ("target_verify+dflash", "swa_translate"),
        ("draft_extend+eagle", "page_table"),
        ("target_verify+ngram", "end"),
        ("target_verify+eagle", "end"),
        ("mixed", "end"),
        ("idle", "end"),
    ],
)
def test_the_new_modes_are_cells(mode: str, last: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*STRICT, "--mode", mode, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rules"], found["release"]["strict"]) == ("warfence", {"opened": last, "landed": last})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--marker-after", "layr.1"], "unknown stage 'layr.1'; nearest: layer.1, layer.2, layer.0"),
        (
            ["--marker-after", "relay"],
            "no marker can stand after 'relay', which is not captured; captured: page_table, ",
        ),
        (["--mode", "extnd"], "unknown mode 'extnd'; nearest: extend"),
        (["--fence", "off"], "unknown fence 'off'; choose one of: fine, coarse, donation"),
        (["--rules", "newest"], "unknown rule set 'newest'; choose one of: 28363, 29541, before-33587"),
        (["--mode", "target_verify"], "unknown mode 'target_verify'; nearest: target_verify+ngram"),
        (["--batch", "9"], "--batch is 9; give 1 to 3"),
        (["--backend", "torhc"], "unknown backend 'torhc'; nearest: torch"),
    ],
)
def test_bad_input_is_one_line_and_two(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*STRICT, *arguments]) == 2
    streams = capsys.readouterr()
    assert streams.err.startswith(f"error: {message}")
    assert streams.err.count("\n") == 1
