"""A backend that is warmed up, and the runs on it: serve requests, and keep what came out of each run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from warfence.core.backend import Backend
from warfence.core.errors import DeadHandleError
from warfence.core.modes import FenceMode
from warfence.serve.engine import Engine, EngineConfig, Summary
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.start import one_thread_for_small, open_backend
from warfence.serve.requests import Request

Wrap = Callable[[Backend], Backend]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left. `summary` is None where the runtime refused to go on; `refusal` then says with which words."""

    config: EngineConfig
    device: str
    requests: Sequence[Request]
    summary: Summary | None
    compiled_in_warm_up: int
    compiled_after: int
    runtime: Mapping[str, object]
    guards_writes: bool
    refusal: str | None = None


class Watcher:
    """Told how a run goes on, from the thread that runs it. This one is silent."""

    def starting(self, backend: str, device: str) -> None:
        """The framework is about to be imported."""

    def warmed_up(self, program: str, done: int, total: int) -> None:
        """One more forward was compiled."""

    def running(self, requests: Sequence[Request], what: str) -> None:
        """The requests are about to be served; `what` is a word or two about the run."""

    def token(self, request: Request, last: bool) -> None:
        """The host learnt a token of the request; `last`: it is its last one."""


class Session:
    """One warm engine. Each `serve` is a run of its own on the same captured forwards."""

    def __init__(self, job: Job, engine: Engine, backend: Backend, watcher: Watcher) -> None:
        self._job, self._engine, self._backend, self._watcher = job, engine, backend, watcher
        self._compiled = backend.compilations

    def serve(self, requests: Sequence[Request], what: str = "serving", *, twin: bool = False) -> Outcome:
        """Serve fresh requests to their end. `twin`: serially, so that there is nothing to fence and no order to force.

        A runtime that refuses to go on without a fence (a dead handle) is an outcome; every other failure is raised.
        """
        config = self._engine.config
        if twin:
            config = replace(config, serial=True, fence=FenceMode.FINE, forced_order=None)
        self._watcher.running(requests, what)
        try:
            summary, refusal = self._run(requests, config), None
        except BaseException as error:
            self._open_gates()  # a launch that stands at a closed gate would keep its lane from ending
            dead = next((e for e in _causes(error) if isinstance(e, DeadHandleError)), None)
            if dead is None or config.serial or config.fence is not FenceMode.OFF:
                raise  # behind a fence, or without overlap, nothing may be refused: that would be a bug
            summary, refusal = None, str(dead)
        after = self._backend.compilations - self._compiled
        runtime, guards = dict(self._backend.report()), self._backend.capabilities.guards_writes
        return Outcome(config, self._backend.device, requests, summary, self._compiled, after, runtime, guards, refusal)

    def _run(self, requests: Sequence[Request], config: EngineConfig) -> Summary:
        watching = 0.0
        eos, context = frozenset(self._job.model.config.eos_ids), self._job.limits.context

        def on_token(request: Request, token: int) -> None:
            nonlocal watching
            before = time.perf_counter()
            self._watcher.token(request, is_finished(request, eos, context))
            watching += time.perf_counter() - before

        summary = self._engine.run(requests, on_token, fence=config.fence, serial=config.serial)
        # The watcher's own time is not the scheduler's: the figure must not depend on whether somebody looks.
        watched_us = 1e6 * watching / max(summary.steps, 1)
        return replace(summary, host_us_per_step=summary.host_us_per_step - watched_us)

    def _open_gates(self) -> None:
        for planned in self._engine.forwards.all():
            if planned.forward.gates is not None:
                planned.forward.gates.open_all()


@contextmanager
def session(
    job: Job, watcher: Watcher, wrap: Wrap = lambda backend: backend, config: EngineConfig | None = None
) -> Iterator[Session]:
    """Start the job's backend and compile every forward. Lanes and threads end with the context, whatever happened.

    wrap: puts something of its own around the backend, which closes it. config: in place of the job's.
    """
    options = job.options
    watcher.starting(options.backend, options.device)
    one_thread_for_small(sum(w.size for w in job.model.weights.values()))
    backend = open_backend(options.backend, options.device, options.backend_options())
    try:
        backend = wrap(backend)
        model, spec = job.model, job.spec
        with Engine(
            config or options.engine(), model.config, model.weights, backend, spec.algorithm, spec.draft, options.block
        ) as engine:
            total = len(engine.wanted())
            for done, program in enumerate(engine.warm_up(), start=1):
                watcher.warmed_up(program, done, total)
            yield Session(job, engine, backend, watcher)
    finally:
        backend.close()


def is_finished(request: Request, eos_ids: frozenset[int], context: int) -> bool:
    """Whether the last token that the host knows of the request is its last one."""
    out = request.output
    if not out:
        return False
    ended = request.stop_at_eos and out[-1] in eos_ids
    return ended or len(out) >= request.max_new_tokens or len(request.prompt) + len(out) >= context


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
