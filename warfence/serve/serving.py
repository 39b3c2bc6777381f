"""The work of a server: requests as they arrive, planned, and told their tokens. Implements `warfence.core.scheduler.Work`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from warfence.core.modes import ForwardMode
from warfence.core.scheduler import Results
from warfence.serve.planner import IDLE, Planner, RequestPlan
from warfence.serve.requests import Phase, Request

OnToken = Callable[[Request, int], None]


@dataclass(slots=True)
class SpecCounts:
    """rows: rows of a verify whose result counted. tokens: what these brought, the chosen token included."""

    rows: int = 0
    tokens: int = 0


class Serving:
    """Serves requests until none is left. `on_token` is called for each output token, in order, once it is known."""

    def __init__(
        self, planner: Planner, requests: Iterable[Request], *, eos_ids: frozenset[int], on_token: OnToken
    ) -> None:
        self.planner, self.spec_counts = planner, SpecCounts()
        self._eos_ids, self._on_token = eos_ids, on_token
        self._arrivals = sorted(requests, key=lambda r: (r.arrival_s, r.id), reverse=True)  # popped from the end
        self._start = 0.0

    def begin(self) -> None:
        self._start = time.perf_counter()

    def admit(self) -> bool:
        now = time.perf_counter() - self._start
        while self._arrivals and self._arrivals[-1].arrival_s <= now:
            self.planner.add(self._arrivals.pop())
        return bool(self._arrivals) or self.planner.busy

    def plan(self) -> RequestPlan | None:
        return self.planner.plan()

    def padding(self) -> RequestPlan:
        return IDLE

    def learn(self, plan: RequestPlan, results: Results) -> None:
        """Learn the tokens of a step, end requests, and write what their end changes in the tables."""
        result, verify = results[plan.mode], plan.mode is ForwardMode.TARGET_VERIFY
        tokens, margins = result["next_tokens"], result["margin"]
        for i, (request, emits) in enumerate(zip(plan.requests, plan.emits, strict=True)):
            if not emits or request.stopped:  # an inner chunk, or surplus of a request that ended one step ago
                continue
            if verify:
                n = int(result["accept_lens"][i])
                learned = self._learn(request, tokens[i, :n].tolist(), margins[i, :n].tolist(), tokens.shape[1])
                self.spec_counts.rows += 1
                self.spec_counts.tokens += learned
            else:
                self._learn(request, [int(tokens[i])], [float(margins[i])], 1)
        self.planner.flush()

    def await_arrival(self) -> None:
        if self._arrivals:
            time.sleep(max(0.0, self._arrivals[-1].arrival_s - (time.perf_counter() - self._start)))

    def _learn(self, request: Request, tokens: list[int], margins: list[float], block: int) -> int:
        """Hand the tokens of one launch over, up to the request's last one. Returns how many that were."""
        room = min(request.max_new_tokens, self.planner.limits.context - len(request.prompt)) - len(request.output)
        ends = [i for i, token in enumerate(tokens) if request.stop_at_eos and token in self._eos_ids]
        n = min(len(tokens), room, ends[0] + 1 if ends else len(tokens))
        request.learn(n, block)
        now = time.perf_counter() - self._start
        for token, margin in zip(tokens[:n], margins, strict=False):
            request.output.append(token)
            request.margins.append(margin)
            request.heard_s.append(now)
            self._on_token(request, token)
        if n == room or (ends and n == ends[0] + 1):
            request.stop()
            if request.phase is not Phase.DONE:
                self.planner.release(request)
        elif block > 1:
            self.planner.learned(request)
        return n
