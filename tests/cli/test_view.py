"""The text of a request: in the middle of a character it waits, and at its end it is what `decode` gives."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import tokenizers

from warfence.cli.view import _texts
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.workload import Entry
from warfence.serve.model.tokenizer import Tokenizer
from warfence.serve.requests import Request

BYTES = [0x0A, 0xF0, 0x9F, 0x99, 0x82]  # a line end, then a face of four bytes


@pytest.fixture
def fallback(tmp_path: Path) -> Tokenizer:
    """Single bytes by the fallback of sentencepiece: a whole run of them is decoded together."""
    vocab: dict[str, Any] = {"<unk>": 0, "a": 1} | {f"<0x{byte:02X}>": i for i, byte in enumerate(BYTES, start=2)}
    model = tokenizers.models.BPE(vocab=vocab, merges=[], unk_token="<unk>", byte_fallback=True)
    inner = tokenizers.Tokenizer(model)
    decoders = tokenizers.decoders
    inner.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    (tmp_path / "tokenizer.json").write_text(json.dumps(json.loads(inner.to_str())))
    return Tokenizer.load(tmp_path)


def shown(tokenizer: Tokenizer, ids: list[int], ended: bool) -> str:
    job = SimpleNamespace(
        model=SimpleNamespace(tokenizer=tokenizer), workload=SimpleNamespace(entries=[Entry("p", (1,), 9)])
    )
    return _texts(cast("Job", job), Request(0, (1,), 9, output=list(ids)), ended)[1]


def test_an_open_run_of_bytes_waits_and_the_end_is_decode(fallback: Tokenizer) -> None:
    ids = [1, 2, 3, 4, 5, 6]
    assert [shown(fallback, ids[:n], ended=False) for n in range(1, 7)] == ["a", "a␊", "a", "a", "a", "a␊🙂"]
    for n in range(1, 7):
        assert shown(fallback, ids[:n], ended=True) == fallback.decode(ids[:n]).replace("\n", "␊")
    assert shown(fallback, ids[:4], ended=True) == "a\ufffd\ufffd\ufffd"
