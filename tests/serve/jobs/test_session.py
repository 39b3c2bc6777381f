"""Runs on a warm backend: what they leave, that they repeat, and what a missing fence does to them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
import pytest

from warfence.core.errors import DeadHandleError, FenceError, StageError
from warfence.serve.engine import Engine, Summary
from warfence.serve.jobs.hazard import Hazard, compare
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.run_report import run_report
from warfence.serve.jobs.session import Outcome, Watcher, session
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.requests import Request
from warfence.serve.serving import OnToken

pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.slow


class Recorder(Watcher):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.finished: list[int] = []

    def starting(self, backend: str, device: str) -> None:
        self.told.append(("starting", backend, device))

    def warmed_up(self, program: str, done: int, total: int) -> None:
        self.told.append(("warm", done, total))

    def running(self, requests: Sequence[Request], what: str) -> None:
        self.told.append(("running", len(requests), what))

    def token(self, request: Request, last: bool) -> None:
        if last:
            self.finished.append(request.id)


def without_fence(job: Job, **options: object) -> Job:
    return replace(job, options=replace(job.options, fence="off", allow_hazard=True, **options))  # type: ignore[arg-type]


def unfenced(job: Job) -> Hazard:
    job = without_fence(job)
    with session(job, Watcher()) as warm:
        twin = warm.serve(job.workload.requests(), twin=True)
        return compare(job, twin, warm.serve(job.workload.requests()))


def test_a_run_is_the_reference_and_tells_its_watcher(job: Job) -> None:
    recorder, requests = Recorder(), job.workload.requests()
    with session(job, recorder) as warm:
        outcome = warm.serve(requests)
    reference = ReferenceModel(job.model)
    for request in requests:
        expected = reference.generate(request.prompt, request.max_new_tokens, request.params, request.id)
        assert request.output == expected.tokens
        np.testing.assert_allclose(request.margins, expected.margins, atol=1e-4)
    total = outcome.compiled_in_warm_up
    warm_up = [("warm", done, total) for done in range(1, total + 1)]
    assert recorder.told == [("starting", "torch", "cpu"), *warm_up, ("running", 6, "serving")]
    assert sorted(recorder.finished) == list(range(6))
    assert outcome.compiled_after == 0
    assert outcome.summary is not None
    assert outcome.summary.host_us_per_step > 0


def test_the_watchers_time_is_not_the_schedulers(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at this clock is a second, so each of the 72 tokens costs a second of watching."""
    with session(job, Watcher()) as warm:
        outcome = warm.serve(job.workload.requests())
        monkeypatch.setattr(Engine, "run", lambda self, requests, on_token, **_: played(outcome, requests, on_token))
        seconds = iter(float(n) for n in range(1000))
        monkeypatch.setattr("warfence.serve.jobs.session.time.perf_counter", lambda: next(seconds))
        again = warm.serve(job.workload.requests())
    assert again.summary is not None
    assert again.summary.host_us_per_step == pytest.approx(1e9 - 1e6 * 72 / again.summary.steps)


def played(outcome: Outcome, requests: Sequence[Request], on_token: OnToken) -> Summary:
    """A run's tokens once more, for a summary that says a thousand seconds of host time a step."""
    assert outcome.summary is not None
    for before, request in zip(outcome.requests, requests, strict=True):
        for token in before.output:
            request.output.append(token)
            on_token(request, token)
    return replace(outcome.summary, host_us_per_step=1e9)


def test_without_a_fence_the_text_is_wrong_the_same_way_every_time(job: Job) -> None:
    first, second = unfenced(job), unfenced(job)
    assert first.wrong
    assert first.wrong == second.wrong
    assert [r.output for r in first.run.requests] == [r.output for r in second.run.requests]
    assert first.serial_text != first.text
    assert (first.landed, first.waited, first.refused) == (first.run.summary.steps, 0, 0)  # type: ignore[union-attr]
    said = first.to_json()
    assert said["differs"]
    assert said["requests_differing"] == len(first.wrong)
    assert said["first"] == {
        "request": first.wrong[0].request,
        "position": first.wrong[0].position,
        "serial_text": first.serial_text,
        "text": first.text,
    }


def test_with_a_fence_the_same_adversary_does_nothing(job: Job) -> None:
    config = replace(job.options.engine(), forced_order="first")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warfence.serve.jobs.options.ServeOptions.engine", lambda self: config)
        with session(job, Watcher()) as warm:
            twin = warm.serve(job.workload.requests(), twin=True)
            hazard = compare(job, twin, warm.serve(job.workload.requests()))
    assert (hazard.wrong, hazard.near_ties, hazard.landed) == ((), (), 0)
    assert hazard.waited > 0


def refuse(*_: object, **__: object) -> NoReturn:
    raise FenceError("lane 'forward' failed") from DeadHandleError("launch 1: the table's memory is taken")


def test_a_refusal_of_the_runtime_is_an_outcome_only_without_a_fence(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = without_fence(job)
    with session(bare, Watcher()) as warm:
        twin = warm.serve(bare.workload.requests(), twin=True)
        monkeypatch.setattr(Engine, "run", refuse)
        outcome = warm.serve(bare.workload.requests())
        with pytest.raises(FenceError):
            warm.serve(bare.workload.requests(), twin=True)
    hazard = compare(bare, twin, outcome)
    assert hazard.to_json()["runtime"] == {
        "guards_writes": False,
        "held": 0,
        "refused": 1,
        "said": "launch 1: the table's memory is taken",
    }
    assert not hazard.wrong
    report = run_report(bare, outcome)
    assert not report["completed"]
    assert report["steps"] is report["barriers"] is None
    with session(job, Watcher()) as warm, pytest.raises(FenceError, match="lane 'forward' failed"):
        warm.serve(job.workload.requests())


def test_an_interrupt_opens_the_gates_so_that_lanes_end(job: Job) -> None:
    """Without that, leaving the session would wait for the watchdog of the gate at which a launch stands."""

    class Impatient(Watcher):
        def token(self, request: Request, last: bool) -> None:
            raise KeyboardInterrupt

    before = lanes_alive()
    with pytest.raises(KeyboardInterrupt), session(without_fence(job), Impatient()) as warm:
        warm.serve(job.workload.requests())
    assert lanes_alive() <= before


def test_a_failing_stage_names_launch_and_stage_and_lanes_end(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    from warfence_torch import kernels

    def broken(*_: object) -> NoReturn:
        raise RuntimeError("out of luck")

    monkeypatch.setitem(kernels.KERNELS, "logits", broken)
    before = lanes_alive()
    said = "launch 1, stage 'logits': RuntimeError: out of luck"
    with pytest.raises(StageError, match=said), session(job, Watcher()) as warm:
        warm.serve(job.workload.requests())
    assert lanes_alive() <= before


def lanes_alive() -> set[threading.Thread]:
    """The lanes' threads of this process, those of other tests' engines included."""
    alive = {thread for thread in threading.enumerate() if thread.name.startswith("warfence-")}
    return {
        thread for thread in alive if not thread.name.startswith("warfence-compile")
    }  # a pool that all JAX backends share


@pytest.mark.parametrize(("tables", "differs"), [("donated", False), ("aliased", True)])
def test_jax_guards_or_corrupts(job: Job, tables: str, differs: bool) -> None:
    """Donated tables: the runtime holds the write or refuses the handle, and either way no text is wrong."""
    pytest.importorskip("jax", reason="jax is not installed")
    hazard = unfenced(replace(job, options=replace(job.options, backend="jax", tables=tables)))
    said = hazard.to_json()
    assert said["differs"] == differs
    assert (
        (said["runtime"]["held"] + said["runtime"]["refused"] > 0) == said["runtime"]["guards_writes"] == (not differs)
    )
    assert (hazard.run.refusal is not None) == (said["runtime"]["refused"] > 0)
