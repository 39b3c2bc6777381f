"""Traces: arrivals relative to the first line, prompts of the trace's lengths, clipping, and bad lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warfence.core.errors import InputError
from warfence.serve.jobs.arrivals import trace_workload
from warfence.serve.jobs.traces import Arrival, read_trace
from warfence.serve.model import load_model
from warfence.serve.sampling import SamplingParams

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
LINES = "2023-11-16 18:15:46.6805900,5,44\n2023-11-16 18:15:50.9305900,2,109\n\n2023-11-16 18:16:46.6805900,300,7\n"

BURST = "Timestamp,Model,Request tokens,Response tokens\n"
MOONCAKE = (
    '{"timestamp": 500, "input_length": 600, "output_length": 9, "hash_ids": [0, 1]}\n'
    '{"timestamp": 500, "input_length": 700, "output_length": 8, "hash_ids": [0, 2]}\n'
    '{"timestamp": 3052, "input_length": 5, "output_length": 7, "hash_ids": [3]}\n'
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return path


def test_arrivals_are_relative_to_the_first_line(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + LINES)
    found = read_trace(path).arrivals
    assert found == (Arrival(0.0, 5, 44), Arrival(4.25, 2, 109), Arrival(60.0, 300, 7))
    assert read_trace(path, 2).arrivals == found[:2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "', line 1: '' names other columns; allowed are Azure: TIMESTAMP, ContextTokens, GeneratedTokens; BurstGPT:",
        ),
        ("a,b\n", "', line 1: 'a,b' names other columns"),
        (HEADER, "' holds no arrival; allowed are Azure"),
        (BURST + "5,GPT-4,x,9\n", "', line 2: '5, GPT-4, x, 9' does not parse as a row of BurstGPT (Timestamp"),
        (BURST + "nan,GPT-4,5,9\n", "', line 2: 'nan, GPT-4, 5, 9' has no finite time"),
        ('{"timestamp": 0}\n', "', line 1: '0' has other fields; allowed are Azure"),
        (MOONCAKE + "[1]\n", "', line 4: [1] has other fields"),
        (MOONCAKE + "{\n", "', line 4: is no JSON"),
        (
            MOONCAKE + '{"timestamp": 9000, "input_length": 1.5, "output_length": 1}\n',
            "', line 4: '9000, 1.5, 1' does not parse",
        ),
        (
            HEADER + LINES + "yesterday,1,2\n",
            "', line 6: 'yesterday, 1, 2' does not parse as a row of Azure (TIMESTAMP",
        ),
        (HEADER + "2023-11-16 18:15:46,1\n", "', line 2: '2023-11-16 18:15:46,1' has 2 cells, and line 1 has 3"),
        (HEADER + "2023-11-16 18:15:46,1,2,3\n", "', line 2: "),
        (HEADER + "2023-11-16 18:15:46,1.5,2\n", "', line 2: "),
        (HEADER + "2023-11-16 18:15:46,0,2\n", "', line 2: '2023-11-16 18:15:46, 0, 2' has a count below 1"),
        (
            HEADER + LINES + "2023-11-16 18:15:45,1,2\n",
            "', line 6: '2023-11-16 18:15:45' is earlier than line 5; sort the lines by time",
        ),
        (HEADER + LINES + "2023-11-16 18:16:45+00:00,1,2\n", "', line 6: '2023-11-16 18:16:45+00:00' is earlier"),
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


def test_a_date_with_a_zone(tmp_path: Path) -> None:
    """Azure 2024."""
    lines = "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 02:00:01.259930+02:00,2399,6\n"
    assert read_trace(write(tmp_path, HEADER + lines)).arrivals == (Arrival(0.0, 2162, 5), Arrival(1.25, 2399, 6))


def test_burstgpt_is_known_by_its_columns_in_any_order_and_its_failures_are_said(tmp_path: Path) -> None:
    text = "Response tokens,Timestamp,Model,Request tokens,Log Type\n18,5,ChatGPT,472,x\n0,6,GPT-4,3,x\n230,45.5,GPT-4,1087,x\n"
    trace = read_trace(write(tmp_path, text))
    assert trace.arrivals == (Arrival(0.0, 472, 18), Arrival(40.5, 1087, 230))
    assert trace.notes == ("1 rows of the trace have no answer (failed requests) and are left out.",)


def test_mooncake_counts_milliseconds_and_bailian_seconds(tmp_path: Path) -> None:
    mooncake = read_trace(write(tmp_path, MOONCAKE)).arrivals
    assert [(a.at_s, a.context_tokens, a.generated_tokens, a.hashes, a.block) for a in mooncake] == [
        (0.0, 600, 9, (0, 1), 512), (0.0, 700, 8, (0, 2), 512), (2.552, 5, 7, (3,), 512),
    ]  # fmt: skip
    line = '{"chat_id": 1, "parent_chat_id": -1, "timestamp": %s, "input_length": 20, "output_length": 3, "hash_ids": [4, 5]}\n'
    bailian = read_trace(write(tmp_path, line % 1.5 + line % 3.75)).arrivals
    assert [(a.at_s, a.hashes, a.block) for a in bailian] == [(0.0, (4, 5), 16), (2.25, (4, 5), 16)]


def test_shared_prefixes_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    arrivals, tokenizer = read_trace(write(tmp_path, MOONCAKE)).arrivals, load_model().tokenizer
    texts = ["Blessed is the man that walketh not in the counsel of the ungodly, nor standeth in the way of sinners"]

    def prompts(share: bool) -> list[tuple[int, ...]]:
        made = trace_workload(arrivals, texts, tokenizer, 1024, SamplingParams(), share_prefixes=share)
        return [entry.tokens for entry in made.entries]

    first, second, third = prompts(share=True)
    assert (len(first), len(second), len(third)) == (600, 700, 5)
    assert first[:512] == second[:512]
    assert first[512:] != second[512:600]
    assert prompts(share=False)[0][:512] != prompts(share=False)[1][:512]
    with pytest.raises(InputError, match="--share-prefixes: a request has 3 prompt tokens and 0 hashes"):
        trace_workload([Arrival(0.0, 3, 1)], texts, tokenizer, 99, SamplingParams(), share_prefixes=True)
