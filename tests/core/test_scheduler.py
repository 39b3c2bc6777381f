"""Law 6: run 1, barrier, run 2, barrier, result of 1. The barrier stands before every later schedule write."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np

from warfence.core.batch import BatchLayout, BatchRow
from warfence.core.modes import ForwardMode
from warfence.core.scheduler import Scheduler
from warfence.serve.planner import RequestPlan
from warfence.serve.requests import Request
from warfence.serve.serving import Serving


class Noting:
    """Planner, forwards, runner and barrier in one, writing down the calls in order."""

    mailbox = SimpleNamespace(clear=lambda: None)

    def __init__(self, steps: int, alone: tuple[int, ...] = ()) -> None:
        self.alone = alone
        self.notes: list[str] = []
        self.request = Request(0, (1,), steps)
        self.steps = self.planned = 0
        self.steps = steps

    @property
    def busy(self) -> bool:
        return self.planned < self.steps

    def add(self, request: Request) -> None:
        self.notes.append("add")

    def plan(self) -> RequestPlan | None:
        if not self.busy:
            return None
        self.planned += 1
        self.notes.append(f"plan {self.planned}")
        row = BatchRow(1, 0, (), (1,), True, 0.0, 1.0, ())
        overlap = self.planned not in self.alone
        return RequestPlan(ForwardMode.DECODE, (row,), (self.request,), (True,), overlap=overlap)

    limits = SimpleNamespace(context=99)

    def release(self, request: Request) -> None:
        """Nothing is held."""

    def flush(self) -> None:
        self.notes.append("flush")

    def pick(self, mode: ForwardMode, rows: int, sampled: bool) -> Any:
        return SimpleNamespace(forward=SimpleNamespace(program=SimpleNamespace(layout=BatchLayout(1, 1))))

    def execute(self, planned: Any, batch: Any, launch: int) -> Any:
        self.notes.append(f"run {launch}")

        def result() -> dict[str, np.ndarray]:
            self.notes.append(f"result {launch}")
            return {"next_tokens": np.array([launch]), "margin": np.array([1.0])}

        return SimpleNamespace(result=result, device_s=None)

    def apply(self, launch: int, *_: Any) -> None:
        self.notes.append(f"barrier {launch}")


def scheduler(noting: Noting) -> Scheduler:
    n: Any = noting
    return Scheduler(n, {"target": n}, n, n, n, launches=itertools.count(1))


def work(noting: Noting, *eos: int) -> Serving:
    n: Any = noting
    return Serving(n, [noting.request], eos_ids=frozenset(eos), on_token=lambda r, t: None)


def test_overlapped_order() -> None:
    noting = Noting(2)
    scheduler(noting).overlapped(work(noting))
    assert noting.notes == [
        "add", "plan 1", "run 1", "barrier 1", "plan 2", "run 2", "barrier 2", "result 1", "flush", "result 2", "flush",
    ]  # fmt: skip
    assert noting.request.output == [1, 2]


def test_a_plan_that_asks_for_no_overlap_is_issued_behind_the_result_before() -> None:
    """And only that one: its own result is learned behind the next launch again."""
    noting = Noting(3, alone=(2,))
    loop = scheduler(noting)
    loop.overlapped(work(noting))
    assert noting.notes == [
        "add", "plan 1", "run 1", "barrier 1", "plan 2", "result 1", "flush", "run 2", "barrier 2",
        "plan 3", "run 3", "barrier 3", "result 2", "flush", "result 3", "flush",
    ]  # fmt: skip
    assert (noting.request.output, loop.timing.not_overlapped) == ([1, 2, 3], 1)


def test_the_first_step_has_nothing_to_wait_for() -> None:
    noting = Noting(1, alone=(1,))
    loop = scheduler(noting)
    loop.overlapped(work(noting))
    assert (noting.request.output, loop.timing.not_overlapped) == ([1], 0)


def test_serial_order_has_no_barrier() -> None:
    noting = Noting(2)
    scheduler(noting).serial(work(noting))
    assert noting.notes == ["add", "plan 1", "run 1", "result 1", "flush", "plan 2", "run 2", "result 2", "flush"]


def test_surplus_of_a_stopped_request_is_dropped() -> None:
    noting = Noting(3)
    noting.release = lambda request: noting.notes.append("release")  # type: ignore[attr-defined]
    scheduler(noting).overlapped(work(noting, 1))
    assert noting.request.output == [1], "token 1 ended it; launches 2 and 3 were surplus"
    assert noting.notes.count("release") == 1
