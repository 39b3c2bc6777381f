"""What a user waits for, behind each fence: conversations of several turns, at the arrivals of a real trace.

Each turn asks the same prompt again behind all that was said before, so prompts grow and prefill takes a larger share: the load
for which publishing prefill is meant. All loops serve the same turns, and must give the same tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path

from warfence.bench.group import Open
from warfence.bench.spread import Spread
from warfence.core.errors import WarfenceError
from warfence.core.modes import FenceMode
from warfence.host.meter import Meter
from warfence.serve.engine import Engine, Summary
from warfence.serve.jobs.job import Job, prepare
from warfence.serve.jobs.options import ServeOptions
from warfence.serve.jobs.traces import read_trace
from warfence.serve.latency import Latency, Percentiles, occupancy
from warfence.serve.requests import Request

SERIAL = "serial"
LOOPS = (FenceMode.FINE.value, FenceMode.COARSE.value, FenceMode.SELF.value, SERIAL)
TURNS, NEW_TOKENS = 3, 16
SPEED = 40.0  # of the arrivals: at the trace's own pace a small model mostly waits
ATTENTION = "snapshot"  # the kind whose prefill may publish
PERCENTILES = tuple(f.name for f in fields(Percentiles))


@dataclass(frozen=True, slots=True)
class RoundsResult:
    """Whole conversations behind one loop. prefill: whether its prefill publishes.

    tokens, fine_barriers, steps: of one repetition. ttft_ms, itl_ms: by percentile. occupancy: None where the backend cannot
    tell.
    """

    backend: str
    device: str
    loop: str
    prefill: bool
    turns: int
    requests: int
    tokens: int
    fine_barriers: int
    steps: int
    tokens_per_s: Spread
    ttft_ms: Mapping[str, Spread]
    itl_ms: Mapping[str, Spread]
    occupancy: Spread | None


@dataclass(frozen=True, slots=True)
class Talk:
    """One repetition: all turns of all conversations behind one loop."""

    latency: Latency
    occupancy: float | None
    tokens_per_s: float
    summaries: tuple[Summary, ...]

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(s.tokens_sha256 for s in self.summaries)


def first_turn(device: str, trace: Path, requests: int) -> Job:
    """Prompts of our own, which are short, at the arrivals of the trace."""
    job = prepare(ServeOptions(device=device, limit=requests, max_new_tokens=NEW_TOKENS, attention=ATTENTION))
    entries = job.workload.entries
    arrivals = read_trace(trace, len(entries)).arrivals
    at = [replace(entry, arrival_s=one.at_s / SPEED) for entry, one in zip(entries, arrivals, strict=False)]
    return replace(job, workload=replace(job.workload, entries=tuple(at)))


def again(requests: Sequence[Request], room: int) -> list[Request]:
    """The next turn: each prompt once more behind what was said, as far back as there is room for. Arrivals as before."""
    said = [(r, (*r.prompt, *r.output, *r.prompt)[-room:]) for r in requests]
    return [Request(r.id, p, r.max_new_tokens, r.params, r.arrival_s, r.stop_at_eos) for r, p in said]


def talk(engine: Engine, job: Job, loop: str) -> Talk:
    """Serve all turns, one after the other."""
    requests, everyone, summaries = job.workload.requests(), list[Request](), list[Summary]()
    room = min(engine.limits.context, engine.limits.slots - 1) - NEW_TOKENS
    how = {"serial": True} if loop == SERIAL else {"fence": FenceMode(loop), "serial": False}
    for _ in range(TURNS):
        summaries.append(engine.run(requests, **how))
        everyone += requests
        requests = again(requests, room)
    seconds = sum(s.seconds for s in summaries)
    ran = [None if s.occupancy is None else s.occupancy * s.seconds for s in summaries]
    tokens = sum(s.generated_tokens for s in summaries)
    return Talk(Latency.of(everyone), occupancy(ran, seconds), tokens / seconds, tuple(summaries))


def measure_rounds(name: str, open_backend: Open, job: Job, rounds: int, meter: Meter) -> list[RoundsResult]:
    """Every loop with prefill publishing and without, in turn, `rounds` times; the first round warms up and does not count."""
    with ExitStack() as stack:
        engines: dict[bool, Engine] = {}
        for prefill in (False, True):
            config = replace(job.options.engine(), prefill=prefill)
            engine = stack.enter_context(Engine(config, job.model.config, job.model.weights, open_backend({})))
            meter.phase(
                f"{name}: rounds, prefill {'publishing' if prefill else 'coarse'}: compiling", len(engine.wanted())
            )
            for _ in engine.warm_up():
                meter.step()
            engines[prefill] = engine
        meter.phase(f"{name}: rounds", (rounds + 1) * len(engines) * len(LOOPS))
        talks: dict[tuple[bool, str], list[Talk]] = {(p, loop): [] for p in engines for loop in LOOPS}
        for _ in range(rounds + 1):
            for (prefill, loop), found in talks.items():
                found.append(talk(engines[prefill], job, loop))
                meter.step()
        device = engines[False].backend.device
    digests = {one.digests for found in talks.values() for one in found}
    if len(digests) > 1:
        raise WarfenceError(f"bench: {name}, axis rounds: tokens differ between loops: {sorted(digests)}")
    return [_result(name, device, prefill, loop, found[1:]) for (prefill, loop), found in talks.items()]


def _result(name: str, device: str, prefill: bool, loop: str, talks: Sequence[Talk]) -> RoundsResult:
    last, shares = talks[-1].summaries, [one.occupancy for one in talks]
    told = [share for share in shares if share is not None]
    return RoundsResult(
        name, device, loop, prefill, len(last), last[0].requests, sum(s.generated_tokens for s in last),
        sum(s.barriers["fine"] for s in last), sum(s.steps for s in last),
        Spread.of(one.tokens_per_s for one in talks),
        _by_percentile([one.latency.ttft_ms for one in talks]), _by_percentile([one.latency.itl_ms for one in talks]),
        Spread.of(told) if len(told) == len(shares) else None,
    )  # fmt: skip


def _by_percentile(found: Sequence[Percentiles | None]) -> dict[str, Spread]:
    known = [one for one in found if one is not None]
    return {name: Spread.of(getattr(one, name) for one in known) for name in PERCENTILES if known}
