"""A traced run: a few steps of a job on a backend that notes its times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from warfence import backends
from warfence.core.abilities import Profiles
from warfence.core.backend import FORWARD, PLAN, SCHEDULE, Backend
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode
from warfence.serve.engine import EngineConfig
from warfence.serve.jobs.job import Job, prepare
from warfence.serve.jobs.options import ServeOptions
from warfence.serve.jobs.session import Session, Watcher, session
from warfence.show.observe import Observed, Observer, Tracer
from warfence.show.timeline.build import timeline
from warfence.show.timeline.model import Timeline

ROWS, SETTLED, BEFORE = 4, 3, 8  # requests; decoding steps that are left out; tokens a request has beyond the steps
MODES = (ForwardMode.DECODE.value, ForwardMode.TARGET_VERIFY.value)


@dataclass(frozen=True, slots=True)
class TracedSession:
    """A warm session on a traced backend."""

    session: Session
    backend: Observed
    tracer: Tracer
    title: str

    def timeline(self) -> Timeline:
        """Of the run that was served. Blocks until the lanes are idle."""
        for lane in (SCHEDULE, PLAN, FORWARD):
            self.backend.inner.lane(lane).settle(1.0)  # no call of the run that is observed
        return timeline(self.tracer, self.title)


@contextmanager
def traced(
    job: Job, watcher: Watcher, config: EngineConfig, beside: Callable[[Backend], Sequence[Observer]] = lambda inner: ()
) -> Iterator[TracedSession]:
    """Start the job's backend, let it note its times, and compile every forward. The trace begins when all is warm.

    beside: makes what else observes the backend.
    """
    tracer = Tracer()
    made: list[Observed] = []

    def trace(inner: Backend) -> Backend:
        made.append(Observed(inner, *beside(inner), tracer))
        return made[0]

    options, algorithm = job.options, job.spec.algorithm
    with session(job, watcher, trace, config) as warm:
        (backend,) = made
        tracer.start()
        kind = f", {algorithm.name}" if algorithm.speculative else ""
        title = f"{backend.name} on {options.device}: fence {options.fence}, attention {options.attention}{kind}"
        yield TracedSession(warm, backend, tracer, title)


def trace_steps(options: ServeOptions, steps: int, profile: Path | None = None) -> Timeline:
    """Serve a few prompts and keep `steps` decoding steps, once they go on evenly.

    profile: where a trace of the framework's own profiler of the same run is to go. InputError for options that cannot be
    served, and for a backend that cannot tell when its stages run, or has no profiler.
    """
    if options.backend in backends.REFERENCE:  # nobody serves with it, but it has times
        options = replace(options, backend=backends.package(options.backend).factory)
    options = replace(options, rows=ROWS, limit=ROWS, max_new_tokens=steps + SETTLED + BEFORE)
    job = prepare(options)
    # Nothing is held at gates: without a fence a write overtakes a read only where it happens to.
    with traced(job, Watcher(), replace(options.engine(), forced_order=None)) as run:
        with profiled(run.backend.inner, profile):
            run.session.serve(job.workload.requests(), "tracing")
        return decoding(run.timeline(), SETTLED, steps)


def first_step(timeline: Timeline) -> Timeline:
    """The first decoding step of what `trace_steps` gave, for a picture."""
    return decoding(timeline, 0, 1)


def profiled(backend: Backend, profile: Path | None) -> AbstractContextManager[None]:
    """Run what is inside under the backend's profiler, where a path is given. InputError where it has none."""
    if profile is None:
        return nullcontext()
    if not isinstance(backend, Profiles):
        raise InputError(f"backend '{backend.name}' has no profiler of its own; leave --profile out")
    return backend.profiled(profile)


def decoding(all_of: Timeline, skip: int, steps: int) -> Timeline:
    """`steps` decoding steps after the first `skip` ones, up to where the reads of the step behind them end."""
    begins = {n: all_of.span(n, n)[0] for n in all_of.launches if all_of.mode(n) in MODES}
    cut_at_the_left = [n for n in begins if n in all_of.cut and n < min(all_of.whole_launches, default=n)]
    chosen = [n for n in begins if n not in cut_at_the_left][skip:]
    if not chosen:
        return all_of
    end = max(s.end for s in all_of.slices)
    if len(chosen) > steps:
        reads_end = all_of.boundary(chosen[steps])
        end = begins[chosen[steps]] if reads_end is None else reads_end
    return all_of.between(begins[chosen[0]], end)
