"""What a worker does with one chunk of cases, and how many workers share a sweep."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

from warfence.races.sweep import judges
from warfence.races.sweep.families import FAMILIES
from warfence.races.sweep.lanes import lane_judges
from warfence.races.sweep.options import Chunk, SweepOptions


@dataclass(frozen=True)
class Judged:
    """One chunk, done. verdicts: of the explorer. judged: by each judge. failures: index -> what each judge said."""

    chunk: int
    family: str
    verdicts: dict[str, int]
    judged: dict[str, int]
    failures: dict[int, dict[str, str]]
    seconds: float

    @property
    def cases(self) -> int:
        return sum(self.verdicts.values())


def spread(plan: SweepOptions, chunks: Sequence[Chunk], workers: int) -> Iterator[Judged]:
    """Every chunk as it is done, in any order. One worker is this process. Ended early, chunks in work are finished and lost."""
    if workers == 1:
        for chunk in chunks:
            yield judge_chunk(plan, chunk)
        return
    # spawn: a forked process would have the threads of a framework in an unknown state
    with ProcessPoolExecutor(workers, get_context("spawn"), _start, (plan,)) as pool:
        futures = [pool.submit(judge_chunk, plan, chunk) for chunk in chunks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def judge_chunk(plan: SweepOptions, chunk: Chunk) -> Judged:
    """Judge the cases of one chunk."""
    start, lanes, family = time.perf_counter(), judges_of(plan), FAMILIES[chunk.family]
    verdicts: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    failures = {}
    for index in chunk.indices:
        case = family.case(index, plan.steps, plan.seed)
        try:
            said = judges.judge(case.scenario, case.expected, lanes)
        except Exception as error:
            error.add_note(f"This was case {index} of family '{chunk.family}', seed {plan.seed}.")
            raise
        verdicts[said[judges.EXPLORER]] += 1
        judged.update(said.keys())
        if judges.disagreement(said):
            failures[index] = said
    seconds = time.perf_counter() - start
    return Judged(chunk.number, chunk.family, dict(verdicts), dict(judged), failures, seconds)


def _start(plan: SweepOptions) -> None:
    """Once in each worker: Ctrl-C is for the parent, and the frameworks are imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    judges_of(plan)


@cache
def judges_of(plan: SweepOptions) -> Sequence[judges.LaneJudge]:
    """The lanes of all backends of a plan, made once in each process."""
    return [judge for backend in plan.backends for judge in lane_judges(backend, plan.device)]
