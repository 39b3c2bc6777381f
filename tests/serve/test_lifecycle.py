"""What an engine refuses, each with one sentence: a second warm-up, a second thread, itself inside itself, a forked child."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from warfence.core.errors import FenceError, InputError
from warfence.parity.small import SmallModel, make_engine, small_model, workload
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.engine import Engine, EngineConfig


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return small_model()


@pytest.fixture
def engine(small: SmallModel) -> Iterator[Engine]:
    with make_engine(small, StrictBackend(), rows=2, extend_rows=1) as made:
        yield made


def test_it_is_warmed_up_once(engine: Engine) -> None:
    with pytest.raises(FenceError, match="an engine that is warm: an engine is warmed up once"):
        next(engine.warm_up())


def test_it_runs_warm_and_open_only(small: SmallModel) -> None:
    cold = Engine(EngineConfig(), small.config, small.weights, StrictBackend())
    with pytest.raises(FenceError, match="an engine that is made: use up warm_up"):
        cold.run([])
    with cold:
        steps = cold.warm_up()
        next(steps)
        with pytest.raises(FenceError, match="an engine that is warming"):
            cold.run([])
    with pytest.raises(FenceError, match="an engine that is closed"):
        cold.run([])


def test_it_does_not_run_inside_itself(engine: Engine) -> None:
    seen: list[str] = []

    def again(*_: object) -> None:
        if not seen:
            with pytest.raises(FenceError) as refused:
                engine.run(workload(False)[:1])
            seen.append(str(refused.value))

    engine.run(workload(False)[:2], again)
    assert "this very thread, in on_token" in seen[0]


def test_it_does_not_run_in_two_threads(engine: Engine) -> None:
    seen: list[BaseException] = []

    def other() -> None:
        try:
            engine.run(workload(False)[:1])
        except FenceError as refused:
            seen.append(refused)

    def meanwhile(*_: object) -> None:
        if not seen:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()

    engine.run(workload(False)[:1], meanwhile)
    assert "another thread runs" in str(seen[0])
    assert engine.run(workload(False)[:1]).requests == 1, "and afterwards it serves again"


def test_another_process_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a forked child would see it: the same engine under another process number."""
    mine = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: mine + 1)
    with pytest.raises(FenceError, match="a forked child has none of its threads"):
        engine.run([])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prompt": (1, -5)}, "token -5; the model has 0 to"),
        ({"prompt": (1, 10**9)}, "token 1000000000; the model has 0 to"),
        ({"arrival_s": float("nan")}, "arrival_s is nan"),
        ({"arrival_s": float("inf")}, "arrival_s is inf"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0; it is at least 1"),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused(engine: Engine, change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        engine.run([replace(workload(False)[0], **change)])


@pytest.mark.parametrize("wrong", [{"fence": "coarse"}, {"forced_order": "never"}])
def test_a_choice_that_there_is_not_is_refused_at_the_door(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"EngineConfig\(.*\); choose"):
        EngineConfig(**wrong)


def test_weights_that_are_no_numbers_are_refused(tmp_path: Any) -> None:
    from safetensors.numpy import save_file

    from warfence.serve.model.safetensors_file import read_safetensors

    save_file({"w": np.array([1.0, np.nan], np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="tensor 'w' holds NaN or infinity"):
        read_safetensors(tmp_path / "model.safetensors")
