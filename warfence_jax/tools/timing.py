"""Times of executables: threads that stand behind the tokens of each lane and look at the host's clock.

The runtime tells nobody when an executable begins, nor when a stage inside of it is over. What can be known is when it
was dispatched, and when its token was first seen to be there; a busy machine may see that late. So while a trace runs the
interpreter changes threads more often than it does by itself, and on the CPU, where one thread's programs run one after
the other anyway, the forward lane's thread waits for each executable before it dispatches the next.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from jax import Array

from warfence.core.abilities import StageTime, Stamp
from warfence.host.clock import HostClock
from warfence.host.lanes import JOIN_S
from warfence_jax.executables import Executable
from warfence_jax.forward import JaxForward, Launch
from warfence_jax.lanes import JaxLane
from warfence_jax.tokens import Promise, WordWait

SWITCH_S = 50e-6  # how long one thread of the interpreter keeps the others waiting; 5 ms by default
EXECUTABLES = "executables"


class Token:
    """One token of the runtime, and when it was first seen. Two watchers of one token have one time."""

    __slots__ = ("array", "seen")

    def __init__(self, array: Array | None) -> None:
        self.array = array
        self.seen: float | None = None

    def look(self) -> None:
        """Block until the token is there. Without an array the work was done in the dispatch itself."""
        if self.array is not None:
            self.array.block_until_ready()
        if self.seen is None:
            self.seen = time.perf_counter()


class TimedJaxForward(JaxForward):
    """A chain of executables whose dispatches and tokens are noted."""

    def __init__(self, timer: JaxTimer, *given: Any) -> None:
        self._timer = timer
        super().__init__(*given)
        self._in_turn = all(executable.device.platform == "cpu" for executable in self.executables)

    def _dispatch(self, launch: Launch, executable: Executable, order: Array, wait: Array) -> Array:
        begin = time.perf_counter()
        token = super()._dispatch(launch, executable, order, wait)
        stages = tuple(stage.name for stage in executable.segment.stages)
        self._timer.dispatched(launch.number, stages, begin, token, self._in_turn)
        return token


class JaxTimer(HostClock):
    """Implements `warfence.core.abilities.Timer`."""

    about: Mapping[str, str] = {
        "clock": "the host's monotonic clock",
        "slice": "one executable, with all of its stages: from its dispatch, or the end of what was before it on the lane, "
        "until its token was seen; a table write likewise, so time that the runtime held it for counts. A wait is an "
        "operand of the next executable: it is drawn until what it waits for was seen",
    }

    def __init__(self) -> None:
        self._noted: list[tuple[int, tuple[str, ...], float, Token]] = []
        self._points: dict[str, list[list[Token]]] = {}  # of each lane, what `after` was asked for, in its order
        self._tokens: dict[int, Token] = {}  # by the identity of the array, which the token keeps alive
        self._watchers: dict[str, SimpleQueue[tuple[Promise | WordWait | Token, list[Token]] | None]] = {}
        self._threads: list[threading.Thread] = []
        self._under_way = 0
        self._changed = threading.Condition()
        self._agreed = True
        self._switch_s: float | None = None  # the interpreter's own, to be put back

    def start(self) -> None:
        self._settle()
        self._noted.clear()
        self._points.clear()
        self._tokens.clear()
        if self._switch_s is None:
            self._switch_s = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_S)
        super().start()

    def before(self, lane: JaxLane) -> Stamp:
        seen: list[float] = []
        lane.after(lambda: seen.append(time.perf_counter()))
        return lambda: self.since(seen[0]) if seen else None

    def after(self, lane: JaxLane) -> Stamp:
        tokens: list[Token] = []
        self._points.setdefault(lane.name, []).append(tokens)
        for promise in lane.newest():
            self._watch(lane.name, promise, tokens)

        dispatched = self.before(lane)  # nothing is over before that, whoever was waited for

        def stamp() -> float | None:
            self._settle()
            behind, times = dispatched(), [self.since(token.seen) for token in tokens if token.seen is not None]
            return None if behind is None else max([behind, *times])

        return stamp

    def stages(self) -> list[StageTime]:
        self._settle()
        return [
            StageTime(launch, stages, self.since(min(begin, token.seen)), self.since(token.seen))
            for launch, stages, begin, token in self._noted
            if token.seen is not None
        ]

    def forward(self, *given: Any) -> TimedJaxForward:
        """A forward of the arguments of `JaxForward`."""
        return TimedJaxForward(self, *given)

    def dispatched(self, launch: int, stages: tuple[str, ...], begin: float, array: Array, in_turn: bool) -> None:
        """An executable was dispatched, from `begin` on; it is over when its token is there. On the lane's thread, which
        waits for it where `in_turn`."""
        self._agreed = False
        token = self._token(array)
        self._noted.append((launch, stages, begin, token))
        if in_turn:
            with suppress(Exception):  # the launch failed, which whoever asks for its results is told
                token.look()
        else:
            self._watch(EXECUTABLES, token, [])

    def close(self) -> None:
        """End the threads, after all that they were told to watch. Safe to call twice."""
        for queue in self._watchers.values():
            queue.put(None)
        for thread in self._threads:
            thread.join(JOIN_S)
        self._watchers, self._threads = {}, []
        if self._switch_s is not None:
            sys.setswitchinterval(self._switch_s)
            self._switch_s = None

    def _token(self, array: Array | None) -> Token:
        token = Token(array)
        return token if array is None else self._tokens.setdefault(id(array), token)

    def _watch(self, name: str, what: Promise | WordWait | Token, tokens: list[Token]) -> None:
        """One thread a name: what two lanes do is not in one order. tokens: where a promise's token is to be put."""
        with self._changed:
            self._agreed = False
            self._under_way += 1
            queue = self._watchers.get(name)
            if queue is None:
                queue = self._watchers[name] = SimpleQueue()
                thread = threading.Thread(target=self._run, args=(queue,), name=f"warfence-times-{name}", daemon=True)
                thread.start()
                self._threads.append(thread)
            queue.put((what, tokens))

    def _run(self, queue: SimpleQueue[tuple[Promise | WordWait | Token, list[Token]] | None]) -> None:
        while (item := queue.get()) is not None:
            what, tokens = item
            if isinstance(what, WordWait):
                with suppress(Exception):  # a launch that never came, which its lane says
                    what.block()
                what = Token(None)
                tokens.append(what)
            elif isinstance(what, Promise):
                what.await_dispatch()
                what = self._token(what.array)
                tokens.append(what)
            with suppress(Exception):  # the launch failed, which whoever asks for its results is told
                what.look()
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def _settle(self) -> None:
        """Block until all that is watched was seen, and let it agree."""
        with self._changed:
            self._changed.wait_for(lambda: self._under_way == 0, JOIN_S)
        if not self._agreed:
            agree([*self._points.values(), [[token] for *_, token in self._noted]])
            self._agreed = True


def agree(lanes: Sequence[Sequence[Sequence[Token]]]) -> None:
    """Bring what was seen late into order, in place. Each lane is a list of points, each there when all of its tokens are.

    The points of a lane come one after the other: one that was seen after the next one was over by then, and so were all of
    its tokens, which other lanes may have as well.
    """
    moved = True
    while moved:
        moved = False
        for points in lanes:
            bound = math.inf
            for tokens in reversed(points):
                bound = min(bound, max((t.seen for t in tokens if t.seen is not None), default=bound))
                for token in tokens:
                    if token.seen is not None and token.seen > bound:
                        token.seen, moved = bound, True
