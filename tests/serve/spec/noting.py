"""A scheduler under planner, forwards, runners and lanes that only write down, in order, what they are asked."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from warfence.core.batch import BatchLayout, BatchRow
from warfence.core.fence import Mailbox, Ticket, WarBarrier
from warfence.core.modes import ForwardMode
from warfence.core.scheduler import Scheduler
from warfence.serve.planner import RequestPlan
from warfence.serve.requests import Phase, Request
from warfence.serve.serving import Serving
from warfence.serve.spec import EAGLE, SpecAlgorithm

DECODE, VERIFY, DRAFT_EXTEND = ForwardMode.DECODE, ForwardMode.TARGET_VERIFY, ForwardMode.DRAFT_EXTEND


class Source:
    def __init__(self, launch: int) -> None:
        self.launch = launch

    def recorded_for(self) -> int | None:
        return self.launch


@dataclass
class World:
    """Planner, forwards and lanes in one, and two runners; all that happens is noted in order."""

    script: list[ForwardMode | None]
    spec: SpecAlgorithm = EAGLE
    publish: frozenset[ForwardMode] = frozenset({DRAFT_EXTEND, DECODE})
    block: int = 4
    accept: int = 1
    tokens: tuple[int, ...] = (5, 6, 7, 8)
    idle: bool = False
    request: Request = field(default_factory=lambda: Request(0, (1,), 50))
    eos: frozenset[int] = frozenset()
    limits: Any = field(default_factory=lambda: SimpleNamespace(context=99))
    name: str = "forward"

    def __post_init__(self) -> None:
        self.notes: list[str] = []
        self.heard: list[int] = []
        self.learned_after: list[int] = []
        self.batches: list[Any] = []
        self.runners = {name: RunnerOf(name, self) for name in ("target", "draft")}
        anything: Any = self
        self.scheduler = Scheduler(
            anything, self.runners, WarBarrier(), anything, anything, launches=itertools.count(1),  # type: ignore[arg-type]
            promises=self.spec, idle=self.idle,
        )  # fmt: skip
        self.work = Serving(
            anything, [self.request], eos_ids=self.eos, on_token=lambda request, token: self.heard.append(token)
        )

    # planner

    @property
    def busy(self) -> bool:
        return bool(self.script)

    def add(self, request: Request) -> None:
        """It is planned from the beginning."""

    def plan(self) -> RequestPlan | None:
        mode = self.script.pop(0) if self.script else None
        if mode is None:
            return None
        row = BatchRow(1, 0, (), (1,), True, 0.0, 1.0, ())
        self.request.flying += 1
        return RequestPlan(mode, (row,), (self.request,), (True,))

    def release(self, request: Request) -> None:
        assert request.phase is not Phase.DONE
        request.phase = Phase.DONE
        self.notes.append("release")

    def learned(self, request: Request) -> None:
        self.learned_after.append(len(request.output))

    def flush(self) -> None:
        """No tables."""

    # forwards

    def pick(self, mode: ForwardMode, rows: int, sampled: bool) -> Any:
        layout = BatchLayout(max(rows, 1), self.block if mode is VERIFY else 1)
        return SimpleNamespace(mode=mode, forward=SimpleNamespace(program=SimpleNamespace(layout=layout)))

    def beside(self, mode: ForwardMode, layout: BatchLayout, nth: int = 0) -> Any:
        return SimpleNamespace(mode=mode, forward=SimpleNamespace(program=SimpleNamespace(layout=layout)))

    # lanes

    def wait(self, ticket: Ticket) -> None:
        self.notes.append(f"wait for ticket {ticket.launch}")

    def wait_lane(self, other: Any) -> None:
        self.notes.append("wait for the forward lane")

    # results

    def result(self, mode: ForwardMode, launch: int) -> dict[str, np.ndarray]:
        self.notes.append(f"result {launch}")
        tokens = np.array([self.tokens if mode is VERIFY else self.tokens[0]], np.int32)
        margin = np.arange(tokens.size, dtype=np.float32).reshape(tokens.shape)
        return {"next_tokens": tokens, "margin": margin, "accept_lens": np.array([self.accept], np.int32)}


class RunnerOf:
    def __init__(self, name: str, world: World) -> None:
        self.name, self.world, self.mailbox = name, world, Mailbox(name)

    def execute(self, planned: Any, batch: Any, launch: int) -> Any:
        self.world.notes.append(f"{self.name} {planned.mode.value} {launch}")
        self.world.batches.append(batch)
        if planned.mode in self.world.publish:
            self.mailbox.publish(Ticket(launch, Source(launch)))  # type: ignore[arg-type]
        return SimpleNamespace(result=lambda: self.world.result(planned.mode, launch), device_s=0.5)
