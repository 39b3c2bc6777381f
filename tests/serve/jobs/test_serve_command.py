"""Long, since the command has many faces.

`warfence serve` as a user meets it: exit statuses, one line of complaint, one JSON object, plain or live output.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from rich.console import Console

from tests.serve.jobs.conftest import PROMPTS, write_model
from warfence.cli import main, output, view
from warfence.serve.jobs.job import prepare
from warfence.serve.jobs.options import ServeOptions
from warfence.serve.jobs.session import Session
from warfence.serve.requests import Request

pytest.importorskip("torch", reason="torch is not installed")

Serve = Callable[..., tuple[int, str, str]]
COUNTS = {"barriers": {"fine", "coarse", "off", "host"}, "policies": {"none", "pre_replay", "in_graph", "post_replay"}}
HAPPENED = {
    "retractions",
    "evictions",
    "later_chunks",
    "rows_recycled",
    "slots_recycled",
    "slots_returned",
    "not_overlapped",
}
KEYS = {
    "backend", "device", "model", "fence", "attention", "serial", "spec", "requests", "generated_tokens",
    "tokens_sha256", "completed", "steps", "steps_by_mode", "tokens_per_step", "seconds", "tokens_per_s",
    "host_us_per_step", "ttft_ms", "itl_ms", "forward_occupancy",
    "device_s_by_mode", "barriers", "policies", "happened", "compilations", "pools", "limits",
    "runtime", "notes", "versions",
}  # fmt: skip


@pytest.fixture
def serve(tiny: Path, prompts: Path, capsys: pytest.CaptureFixture[str]) -> Serve:
    """Run the command on the tiny model: (exit status, stdout, stderr)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        given = ["serve", "--model", tiny, "--prompts", prompts, "--rows", 3, "--max-new-tokens", 12, *arguments]
        status = main([str(argument) for argument in given])
        return status, *capsys.readouterr()

    return run


@pytest.mark.slow
@pytest.mark.parametrize("fence", ["fine", "coarse"])
def test_json_is_one_object_and_nothing_else(serve: Serve, fence: str) -> None:
    status, out, err = serve("--json", "--fence", fence)
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert set(found) == KEYS
    assert (found["backend"], found["device"], found["fence"], found["serial"]) == ("torch", "cpu", fence, False)
    assert (found["requests"], found["spec"]["name"], found["completed"]) == (6, "none", True)
    assert found["compilations"]["after"] == 0 < found["compilations"]["warm_up"]
    assert found["steps"] == sum(found["steps_by_mode"].values()) == sum(found["barriers"].values())
    assert found["steps"] == sum(found["policies"].values())
    assert found["tokens_per_step"] == found["generated_tokens"] / found["steps"]
    assert set(found["device_s_by_mode"]) == {"decode", "extend"}
    assert (found["barriers"]["fine"] > 0) == (fence == "fine")
    assert {name: set(found[name]) for name in COUNTS} == COUNTS
    assert set(found["happened"]) == HAPPENED
    assert found["happened"]["rows_recycled"] == 3
    assert set(found["pools"]) == {"tables", "state", "params"}
    assert all(found["runtime"][f"{name}_bytes"] == size for name, size in found["pools"].items())
    assert found["limits"]["rows"] == 3
    assert {"warfence", "python", "numpy", "torch"} <= set(found["versions"])
    assert re.fullmatch("[0-9a-f]{64}", found["tokens_sha256"])


@pytest.mark.slow
def test_fence_and_overlap_do_not_change_a_token(serve: Serve) -> None:
    runs = [
        (),
        ("--fence", "coarse"),
        ("--serial",),
        ("--attention", "live"),
        ("--rows", 1),
        ("--attention", "unknown"),
        ("--fence", "self"),
        ("--mixed", "--rows", 6),
        ("--idle",),
        ("--slots", 40),
    ]
    assert len({json.loads(serve("--json", *run)[1])["tokens_sha256"] for run in runs}) == 1


@pytest.mark.slow
def test_a_seed_repeats_and_another_one_does_not(serve: Serve) -> None:
    def sha(*arguments: object) -> str:
        return json.loads(serve("--json", "--temperature", 0.9, "--top-p", 0.9, *arguments)[1])["tokens_sha256"]

    assert sha("--seed", 1) == sha("--seed", 1) == sha("--seed", 1, "--serial") != sha("--seed", 2)


@pytest.mark.slow
def test_a_pipe_gets_plain_lines(serve: Serve) -> None:
    status, out, err = serve()
    assert (status, err) == (0, "")
    assert [c for c in out if ord(c) < 32 and c != "\n"] == []
    lines = out.splitlines()
    assert lines[1].startswith("6 requests, model ")
    shown = [re.match(r"\[(\d)/6\] request (\d): (.*?)\|", line) for line in lines[2:8]]
    assert [match[1] for match in shown if match] == list("123456")
    assert {int(match[2]): match[3] for match in shown if match} == dict(enumerate(PROMPTS))
    assert "rows recycled" in out


def plain(text: str) -> str:
    """The text without what steers a terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.mark.slow
def test_a_terminal_gets_a_bar_and_the_newest_text(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, frames = io.StringIO(), []
    console = Console(file=screen, force_terminal=True, width=100, highlight=False, markup=False, emoji=False)
    monkeypatch.setattr(output, "screen", lambda **_: console)
    after_a_token = view.LiveView.token

    def token(self: view.LiveView, request: Request, last: bool) -> None:
        after_a_token(self, request, last)
        with console.capture() as frame:
            console.print(self._render())
        frames.append(plain(frame.get()))

    monkeypatch.setattr(view.LiveView, "token", token)
    assert serve()[0] == 0
    text = plain(screen.getvalue())
    for prompt in PROMPTS:
        assert prompt in text
    assert any("request 0: … In the beginning" in frame for frame in frames)
    assert any(re.search(r"torch: serving.*5/72 tokens, \d+ tokens/s, 0/6 requests", frame) for frame in frames)
    assert re.search(r"72/72 tokens, \d+ tokens/s, 6/6 requests", frames[-1])


@pytest.mark.slow
def test_results_are_written_one_line_a_request(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "o.jsonl"
    status, out, _ = serve("--json", "--out", path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert status == 0
    assert [(line["id"], line["prompt"]) for line in lines] == list(enumerate(PROMPTS))
    assert sum(len(line["tokens"]) for line in lines) == json.loads(out)["generated_tokens"]
    assert all(line["min_margin"] > 0 for line in lines)


def after(count: int, problem: BaseException) -> Callable[[view.PlainView, Request, bool], None]:
    """A view that raises at the first token after `count` requests have finished."""
    finished: list[int] = []

    def token(self: view.PlainView, request: Request, last: bool) -> None:
        if len(finished) == count and not last:
            raise problem
        if last:
            finished.append(request.id)

    return token


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 3])
def test_an_interrupt_keeps_what_finished(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    path = tmp_path / "o.jsonl"
    monkeypatch.setattr(view.PlainView, "token", after(count, KeyboardInterrupt()))
    status, out, err = serve("--json", "--out", path)
    kept = f"their results are in '{path}'" if count else "and nothing was written"
    assert (status, out) == (130, "")
    assert err == f"interrupted: {count} of 6 requests had finished{';' if count else ','} {kept}\n"
    assert path.exists() == bool(count)
    if count:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert [len(line["tokens"]) for line in lines] == [12] * count
    assert [entry for entry in tmp_path.iterdir() if entry.suffix == ".part"] == []


@pytest.mark.slow
def test_a_failing_stage_is_one_line_and_1(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    from warfence_torch import kernels

    def broken(*_: object) -> NoReturn:
        raise RuntimeError("out of luck")

    monkeypatch.setitem(kernels.KERNELS, "logits", broken)
    status, out, err = serve("--json")
    said = "error: launch 1, stage 'logits': RuntimeError: out of luck; 0 of 6 requests had finished, and nothing was"
    assert (status, out, err) == (1, "", f"{said} written\n")


@pytest.mark.slow
def test_a_late_compilation_is_told(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_once = Session.serve
    monkeypatch.setattr(Session, "serve", lambda *given: replace(serve_once(*given), compiled_after=1))
    status, out, err = serve("--json")
    assert json.loads(out)["compilations"]["after"] == 1
    assert (status, err) == (1, "error: 1 programs were compiled after warm-up; please report it\n")


@pytest.mark.slow
def test_without_a_fence_texts_differ_and_it_is_a_success(serve: Serve) -> None:
    status, out, err = serve("--json", "--fence", "off", "--allow-hazard")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert set(found) == KEYS | {"hazard"}
    assert found["fence"] == "off"
    assert found["barriers"] == {"fine": 0, "coarse": 0, "off": found["steps"], "host": 0}
    assert found["hazard"]["differs"]
    assert found["hazard"]["forced_order"] == {"landed_before_read": found["steps"], "waited": 0}
    assert found["tokens_sha256"] != json.loads(serve("--json")[1])["tokens_sha256"]
    assert found == json.loads(serve("--json", "--fence", "off", "--allow-hazard")[1]) | {
        name: found[name] for name in ("seconds", "tokens_per_s")
    }


@pytest.mark.slow
def test_people_see_the_right_and_the_wrong_text(serve: Serve) -> None:
    status, out, _ = serve("--fence", "off", "--allow-hazard")
    assert status == 0
    assert "of 6 requests came out wrong, without any error being raised." in out
    right, wrong = (re.search(rf"^  {which}: +(.*) >>> (.*)$", out, re.M) for which in ("right", "wrong"))
    assert right
    assert wrong
    assert right[1] == wrong[1]
    assert right[2] != wrong[2]


@pytest.mark.slow
def test_a_trace_is_served_to_its_lengths(serve: Serve, tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,9,4\n2023-11-16 18:15:46.69,400,5\nbad\n"
    )
    path = tmp_path / "o.jsonl"
    status, out, err = serve("--trace", trace, "--limit", 2, "--speed", 1000, "--out", path, "--json")
    assert (status, err) == (0, "")
    assert "1 of 2 prompts and 0 of 2 outputs of the trace were longer" in json.loads(out)["notes"][0]
    assert [len(json.loads(line)["tokens"]) for line in path.read_text().splitlines()] == [4, 5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--prompts", "absent.txt"), "prompts file 'absent.txt' cannot be read"),
        (("--trace", "absent.csv"), "trace 'absent.csv' cannot be read"),
        (("--backend", "tensor"), "unknown backend 'tensor'; installed here: torch"),
        (("--backend", "no.such:Thing"), "backend 'no.such:Thing' cannot be loaded from 'no.such:Thing': No module"),
        (("--fence", "off"), "--fence off lets the scheduler overwrite table entries that the running forward has yet"),
        (("--rows", "0"), "--rows is 0; give at least 1"),
        (("--rows", "many"), "Invalid value for '--rows'"),
        (
            ("--max-new-tokens", "500"),
            "7 prompt tokens + 500 new tokens = 507, but context and KV pool hold 128; shorten",
        ),
        (("--model", "absent"), "'absent' is no directory; give a Hugging Face model directory"),
        (("--out", "absent/o.jsonl"), "--out 'absent/o.jsonl': no file can be written there"),
        (("--tables", "aliased"), "backend 'torch' does not know --tables aliased"),
        (("--bogus",), "No such option: --bogus"),
        (("surplus",), "unexpected extra argument"),
    ],
)
def test_bad_input_is_one_line_and_2(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    status, out, err = serve("--json", *arguments)
    assert (status, out) == (2, "")
    assert re.fullmatch(r"error: [^\n]*\n", err)
    assert message in err
    assert sorted(tmp_path.iterdir()) == before


def test_a_device_that_is_absent_is_one_line(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    status, out, err = serve("--device", "cuda")
    assert (status, out) == (2, "")
    assert err.startswith("error: backend torch: no CUDA device here")
    assert err.count("\n") == 1


def test_a_window_that_the_model_cannot_have_is_one_line(
    prompts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_model(tmp_path / "none", sliding_window=0)
    assert main(["serve", "--model", str(model), "--prompts", str(prompts)]) == 2
    assert "sliding_window is 0; allowed are 1 to the context, 128" in capsys.readouterr().err


def test_what_a_directory_says_and_is_not_done_stands_in_the_notes(prompts: Path, tmp_path: Path) -> None:
    model = write_model(tmp_path / "told")
    (model / "generation_config.json").write_text('{"repetition_penalty": 1.3, "eos_token_id": 0}')
    notes = prepare(ServeOptions(model=model, prompts=prompts)).workload.notes
    assert notes == ("generation_config.json asks for what is not applied: repetition_penalty 1.3.",)
