"""Options that cannot be meant: each is one sentence with a remedy, before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warfence.core.errors import InputError
from warfence.core.modes import FenceMode
from warfence.serve.engine import EngineConfig
from warfence.serve.jobs.options import ServeOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fence": "thin"}, r"--fence is 'thin'; choose one of: fine, self, coarse, off"),
        (
            {"fence": "off"},
            r"continue from each other's memory .* add --allow-hazard to see it happen, or use --fence fine",
        ),
        (
            {"fence": "off", "allow_hazard": True, "serial": True},
            r"--serial overlaps nothing.*drop --serial or --fence off",
        ),
        ({"attention": "flash"}, r"unknown attention backend 'flash'; choose one of: snapshot, captured"),
        ({"device": "tpu"}, r"--device is 'tpu'; choose one of: cpu, cuda"),
        ({"backend": "jax", "tables": "shared"}, r"--tables is 'shared'; choose one of: donated, aliased, device"),
        ({"backend": "jax", "marker": "hold"}, r"--marker is 'hold'; choose one of: cut, word, node"),
        ({"backend": "torch", "ticket": "word"}, r"--ticket is 'word'; choose one of: event, value"),
        ({"rows": 0}, r"--rows is 0; give at least 1"),
        ({"max_new_tokens": 0}, r"--max-new-tokens is 0; give at least 1"),
        ({"limit": -1}, r"--limit is -1; give at least 1"),
        ({"temperature": -1.0}, r"temperature is -1.0; allowed are 0 \(greedy\)"),
        ({"top_p": 1.5}, r"top_p is 1.5; allowed is more than 0 up to 1"),
        ({"seed": -1}, r"seed is -1; allowed is 0 to"),
        ({"slots": 0}, r"--slots is 0; give at least 1"),
        (
            {"spec": "medusa"},
            r"unknown speculative algorithm 'medusa'; known: none, ngram, ngram-snapshot, dflash, eagle",
        ),
        ({"draft": Path("d")}, r"--draft is of speculation, and --spec is 'none'; add --spec, or drop --draft"),
        ({"block": 4}, r"--block is of speculation, and --spec is 'none'; add --spec, or drop --block"),
        ({"speed": 2.0}, r"--speed scales the arrivals of a trace; add --trace FILE.csv"),
        ({"speed": 0.0, "trace": Path("t.csv")}, r"--speed is 0.0; give a positive number"),
        ({"speed": float("nan"), "trace": Path("t.csv")}, r"--speed is nan; give a positive number"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ServeOptions(**options).check()


def test_where_nothing_can_be_written_is_told_before_work_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file can be written there"):
        ServeOptions(out=tmp_path / "absent" / "o.jsonl").check()
    with pytest.raises(InputError, match="is a folder; give a file"):
        ServeOptions(out=tmp_path).check()
    ServeOptions(out=tmp_path / "o.jsonl").check()
    assert list(tmp_path.iterdir()) == []


def test_a_backend_of_somebody_else_may_have_other_devices() -> None:
    ServeOptions(backend="their.module:Backend", device="tpu").check()


def test_the_engine_gets_what_was_asked_for() -> None:
    assert ServeOptions().engine() == EngineConfig()
    assert ServeOptions(fence="off", allow_hazard=True).engine() == EngineConfig(
        fence=FenceMode.OFF, forced_order="first"
    )
    chosen = ServeOptions(serial=True, temperature=0.5, rows=3, attention="live").engine()
    assert chosen == EngineConfig(serial=True, sampled=True, rows=3, attention="live")
    assert ServeOptions(fence="self", mixed=True, idle=True, slots=90).engine() == EngineConfig(
        fence=FenceMode.SELF, mixed=True, idle=True, slots=90
    )


@pytest.mark.parametrize(
    ("tables", "expected"), [(None, {}), ("donated", {"tables": "donated"}), ("aliased", {"tables": "aliased"})]
)
def test_only_what_was_given_is_asked_of_a_backend(tables: str | None, expected: dict[str, str]) -> None:
    assert ServeOptions(tables=tables).backend_options() == expected
