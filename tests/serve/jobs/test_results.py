"""The results file: one line a finished request, whole or not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warfence.serve.jobs import results
from warfence.serve.jobs.job import Job
from warfence.serve.requests import Request


def requests(job: Job) -> list[Request]:
    """Six requests: 0 is full, 1 ended with an end token, 2 is half done, the others have nothing."""
    made = job.workload.requests()
    made[0].output, made[0].margins = [5] * 12, [0.5, 0.25] * 6
    made[1].output, made[1].margins = [7, 0], [1.0, float("inf")]
    made[2].output, made[2].margins = [7, 8], [1.0, 1.0]
    return made


def test_only_the_finished_ones_are_written(job: Job, tmp_path: Path) -> None:
    path = tmp_path / "o.jsonl"
    assert results.write_results(path, job, list(reversed(requests(job)))) == 2
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    decode = job.model.tokenizer.decode
    assert lines == [
        {"id": 0, "prompt": "In the beginning", "text": decode([5] * 12), "tokens": [5] * 12, "min_margin": 0.25},
        {"id": 1, "prompt": "And he said unto them,", "text": decode([7, 0]), "tokens": [7, 0], "min_margin": 1.0},
    ]


def test_a_margin_without_a_rival_is_null(job: Job) -> None:
    request = job.workload.requests()[0]
    request.output, request.margins = [5], [float("inf")]
    assert results.result_line(job, request)["min_margin"] is None


def test_a_failure_leaves_what_was_there_and_no_rest(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "o.jsonl"
    path.write_text("from before\n")
    lines = iter(["first"])
    monkeypatch.setattr(results, "result_line", lambda job, request: next(lines))  # the second one fails
    with pytest.raises(StopIteration):
        results.write_results(path, job, requests(job))
    assert path.read_text() == "from before\n"
    assert [entry for entry in tmp_path.iterdir() if entry.suffix == ".part"] == []
