"""Prompts files: what is accepted, and one sentence with a remedy for what is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warfence.core.errors import InputError
from warfence.serve.jobs.prompts import DEFAULT_PROMPTS, prompt_workload, read_prompts
from warfence.serve.model import load_model
from warfence.serve.sampling import SamplingParams


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "p.txt"
    path.write_bytes(data)
    return path


def test_a_line_is_a_prompt_however_it_ends(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufeffone\r\ntwo\u2028still two\n  three \n\n \n".encode())
    assert read_prompts(path) == [("line 1", "one"), ("line 2", "two\u2028still two"), ("line 3", "  three ")]
    assert read_prompts(path, 2) == [("line 1", "one"), ("line 2", "two\u2028still two")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "' holds no prompt; write one prompt a line"),
        (b" \n\t\n", "' holds no prompt; write one prompt a line"),
        (b"one\n \nthree\n", "', line 2: blank; write a prompt there or remove the line"),
        (b"one\nt\xffwo\n", "', line 2: not UTF-8 (byte 0xff at column 2); save the file as UTF-8"),
        (
            b'{"turns": ["a"]}\n{"turns": []}\n',
            "', line 2: holds JSON without a first turn of a user; allowed are ShareGPT",
        ),
        (b'{"turns": ["a"]}\nplain\n', "', line 2: holds JSON without a first turn"),
        (b'{"timestamp": 0, "input_length": 5}\n', "', line 1: holds JSON without a first turn"),
        (b'{\n "a": 1\n}', "', line 1: holds JSON without a first turn"),
        (b'[{"conversations": [{"from": "gpt", "value": "a"}]}]', "', item 1: holds JSON without a first turn"),
        (b'[{"conversations": [{"from": "human", "value": " "}]}]', "', item 1: the first turn is blank"),
        (b'{"turns": ["\\u001b[31m"]}\n', "', line 1: holds the control character U+001B"),
        (b"one\n\x1b[31mtwo\n", "', line 2: holds the control character U+001B; remove it"),
    ],
)
def test_what_cannot_be_a_prompt_is_named_with_its_line(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        read_prompts(write(tmp_path, data))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"prompts file .*absent' cannot be read \(No such file or directory\); give"):
        read_prompts(tmp_path / "absent")
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"):
        read_prompts(tmp_path)


def test_a_bad_line_beyond_the_limit_is_not_looked_at(tmp_path: Path) -> None:
    assert read_prompts(write(tmp_path, b"one\n\nthree\n"), 1) == [("line 1", "one")]


def test_the_shipped_prompts_all_fit() -> None:
    model = load_model()
    workload = prompt_workload(DEFAULT_PROMPTS, model.tokenizer.encode, 512, 48, SamplingParams())
    requests = workload.requests()
    assert [request.id for request in requests] == list(range(40))
    assert all(request.stop_at_eos and request.max_new_tokens == 48 for request in requests)
    assert model.tokenizer.decode(requests[4].prompt) == workload.entries[4].text == "Blessed is the man that"


def test_a_prompt_longer_than_the_context_is_named_with_its_line(tmp_path: Path) -> None:
    path, tokenizer = write(tmp_path, b"short\n" + b"word " * 100), load_model().tokenizer
    need = len(tokenizer.encode("word " * 100))
    message = (
        f"', line 2: {need} prompt tokens + 9 new tokens = {need + 9}, but context and KV pool hold {need + 8}; shorten"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        prompt_workload(path, tokenizer.encode, need + 8, 9, SamplingParams())
    assert len(prompt_workload(path, tokenizer.encode, need + 9, 9, SamplingParams()).entries) == 2


def test_requests_of_two_runs_share_nothing(tmp_path: Path) -> None:
    workload = prompt_workload(write(tmp_path, b"one"), load_model().tokenizer.encode, 99, 9, SamplingParams())
    first, second = workload.requests()[0], workload.requests()[0]
    first.output.append(1)
    assert second.output == []


def test_sharegpt_is_a_list_of_conversations(tmp_path: Path) -> None:
    data = b"""[{"id": "a", "conversations": [{"from": "system", "value": "Brief."}, {"from": "human", "value": "Hello,\\nyou"}]},
    {"id": "b", "conversations": [{"from": "human", "value": "More"}, {"from": "gpt", "value": "No"}]}]"""
    assert read_prompts(write(tmp_path, data)) == [("item 1", "Hello,\nyou"), ("item 2", "More")]
    assert read_prompts(write(tmp_path, data), 1) == [("item 1", "Hello,\nyou")]


def test_mt_bench_has_turns_one_question_a_line(tmp_path: Path) -> None:
    data = b'{"question_id": 81, "turns": ["Compose.", "Rewrite."]}\n\n{"question_id": 82, "turns": ["Draft."]}\n'
    assert read_prompts(write(tmp_path, data)) == [("line 1", "Compose."), ("line 3", "Draft.")]


@pytest.mark.parametrize("text", ["[1, 2] are numbers", "{x} is a set", "[1, 2]", '"quoted"'])
def test_a_text_that_only_looks_like_json_is_a_text(tmp_path: Path, text: str) -> None:
    assert read_prompts(write(tmp_path, text.encode())) == [("line 1", text)]
