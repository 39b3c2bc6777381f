"""The axis rounds: conversations of several turns behind every loop, with prefill publishing and without."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from warfence.bench import document
from warfence.bench.rounds import LOOPS, PERCENTILES, RoundsResult, again, first_turn, measure_rounds
from warfence.cli import main
from warfence.core.errors import WarfenceError
from warfence.host.meter import Meter
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.engine import Engine
from warfence.serve.requests import Request

TRACE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.680,374,44
2023-11-16 18:15:47.080,396,109
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "arrivals.csv"
    path.write_text(TRACE)
    return path


def test_the_first_turn_comes_at_the_arrivals_of_the_trace(trace: Path) -> None:
    requests = first_turn("cpu", trace, 24).workload.requests()
    assert [round(r.arrival_s, 3) for r in requests] == [0.0, 0.01]
    assert len({r.prompt for r in requests}) == 2


def test_the_next_turn_asks_again_behind_what_was_said_as_far_back_as_there_is_room() -> None:
    first = Request(3, (1, 2), 5, arrival_s=0.5, output=[7, 8, 9])
    (second,) = again([first], 100)
    assert (second.id, second.prompt, second.arrival_s, second.output) == (3, (1, 2, 7, 8, 9, 1, 2), 0.5, [])
    assert again([first], 4)[0].prompt == (8, 9, 1, 2)


@pytest.mark.slow
def test_every_loop_is_measured_with_prefill_publishing_and_without(trace: Path) -> None:
    found = measure_rounds("strict", lambda options: StrictBackend(**options), first_turn("cpu", trace, 2), 1, Meter())
    assert [(r.prefill, r.loop) for r in found] == list(itertools.product((False, True), LOOPS))
    assert len({r.tokens for r in found}) == 1
    by = {(r.prefill, r.loop): r for r in found}
    assert 0 < by[False, "fine"].fine_barriers < by[False, "fine"].steps, "prefill is coarse"
    assert by[True, "fine"].fine_barriers == by[True, "fine"].steps
    assert all(r.fine_barriers == 0 for r in found if r.loop != "fine")
    assert all(list(r.ttft_ms) == list(r.itl_ms) == list(PERCENTILES) for r in found)


@pytest.mark.slow
def test_other_tokens_behind_a_loop_are_an_error(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Engine.run

    def wrong(self: Engine, requests: list[Request], **how: object) -> object:
        if how.get("serial"):
            requests[0].max_new_tokens -= 1
        return run(self, requests, **how)

    monkeypatch.setattr(Engine, "run", wrong)
    with pytest.raises(WarfenceError, match="axis rounds: tokens differ between loops"):
        measure_rounds("strict", lambda options: StrictBackend(**options), first_turn("cpu", trace, 2), 1, Meter())


@pytest.mark.slow
def test_it_is_shown_written_and_read_again(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rounds.json"
    bench = ["bench", "--backend", "strict", "--axis", "rounds", "--quick", "--rounds", "1"]
    assert main([*bench, "--trace", str(trace), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "strict on cpu: 3 turns of 2 requests" in shown
    assert shown.count("publishes") == len(LOOPS)
    made = document.read_document(out)
    assert all(isinstance(r, RoundsResult) for r in made.rounds)
    assert len(json.loads(out.read_text())["rounds"]) == 2 * len(LOOPS)
    assert main(["bench", "--read", str(out)]) == 0
    assert "strict on cpu: 3 turns of 2 requests" in capsys.readouterr().out
    assert main(bench) == 2
    assert "the axis rounds serves a real trace; give --trace FILE.csv" in capsys.readouterr().err
