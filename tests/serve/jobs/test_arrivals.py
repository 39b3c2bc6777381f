"""Traces: arrivals relative to the first line, prompts of the trace's lengths, clipping, and bad lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warfence.core.errors import InputError
from warfence.serve.jobs.arrivals import Arrival, read_trace, trace_workload
from warfence.serve.model import load_model
from warfence.serve.sampling import SamplingParams

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
LINES = "2023-11-16 18:15:46.6805900,5,44\n2023-11-16 18:15:50.9305900,2,109\n\n2023-11-16 18:16:46.6805900,300,7\n"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return path


def test_arrivals_are_relative_to_the_first_line(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + LINES)
    found = read_trace(path)
    assert found == [Arrival(0.0, 5, 44), Arrival(4.25, 2, 109), Arrival(60.0, 300, 7)]
    assert read_trace(path, 2) == found[:2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "', line 1: ''; the first line must be TIMESTAMP,ContextTokens,GeneratedTokens"),
        ("a,b\n", "', line 1: 'a,b'; the first line must be"),
        (HEADER, "' holds no arrival; write lines of"),
        (HEADER + LINES + "yesterday,1,2\n", "', line 6: 'yesterday,1,2' does not parse; write TIMESTAMP"),
        (HEADER + "2023-11-16 18:15:46,1\n", "', line 2: '2023-11-16 18:15:46,1' does not parse"),
        (HEADER + "2023-11-16 18:15:46,1,2,3\n", "', line 2: "),
        (HEADER + "2023-11-16 18:15:46,1.5,2\n", "', line 2: "),
        (HEADER + "2023-11-16 18:15:46,0,2\n", "', line 2: '2023-11-16 18:15:46,0,2' has a count below 1"),
        (HEADER + LINES + "2023-11-16 18:15:45,1,2\n", "', line 6: 2023-11-16 18:15:45 is not comparable"),
        (HEADER + LINES + "2023-11-16 18:16:45+00:00,1,2\n", "', line 6: 2023-11-16 18:16:45+00:00 is not comparable"),
    ],
)
def test_a_line_that_cannot_be_meant_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        read_trace(write(tmp_path, text))


def test_prompts_have_the_lengths_of_the_trace_and_go_round() -> None:
    tokenizer = load_model().tokenizer
    texts = ("Blessed is the man", "Woe unto the city")
    flat = [token for text in texts for token in tokenizer.encode(text)]
    arrivals = [Arrival(0.0, 3, 5), Arrival(4.0, len(flat), 6)]
    workload = trace_workload(arrivals, texts, tokenizer, 512, SamplingParams(), speed=2.0)
    first, second = workload.requests()
    assert first.prompt == tuple(flat[:3])
    assert second.prompt == (*flat[3:], *flat[:3])
    assert [(r.arrival_s, r.max_new_tokens, r.stop_at_eos) for r in (first, second)] == [
        (0.0, 5, False),
        (2.0, 6, False),
    ]
    assert workload.notes == ()


@pytest.mark.parametrize(
    ("context", "generated", "most", "expected"),
    [
        (10, 20, None, (10, 20)),
        (60, 40, None, (60, 40)),
        (90, 40, None, (60, 40)),  # the prompt gives way
        (10, 400, None, (10, 90)),  # a short prompt leaves the rest to the output
        (900, 900, None, (50, 50)),  # both are too long: half each
        (90, 40, 5, (90, 5)),
    ],
)
def test_what_does_not_fit_is_clipped_and_said(
    context: int, generated: int, most: int | None, expected: tuple[int, int]
) -> None:
    tokenizer = load_model().tokenizer
    workload = trace_workload(
        [Arrival(0.0, context, generated)], ["In the beginning"], tokenizer, 100, SamplingParams(), 1.0, most
    )
    entry = workload.entries[0]
    assert (len(entry.tokens), entry.max_new_tokens) == expected
    clipped = (int(expected[0] < context), int(expected[1] < generated))
    said = f"{clipped[0]} of 1 prompts and {clipped[1]} of 1 outputs of the trace were longer"
    assert [note.startswith(said) for note in workload.notes] == ([True] if any(clipped) else [])


def test_prompts_without_a_token_make_no_trace() -> None:
    with pytest.raises(InputError, match="give no token"):
        trace_workload([Arrival(0.0, 1, 1)], [""], load_model().tokenizer, 100, SamplingParams())
