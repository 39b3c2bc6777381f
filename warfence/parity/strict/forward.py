"""A forward of the strict backend: each launch becomes items on the forward lane, which run when the host blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warfence.core.backend import Marker
from warfence.core.batch import Batch
from warfence.core.errors import FenceError, StageError
from warfence.core.modes import Region
from warfence.core.program import ForwardProgram, Gated, Stage
from warfence.host.stage_calls import bind
from warfence.parity.kernels import Array, Kernel
from warfence.parity.strict.gates import StrictGates
from warfence.parity.strict.lanes import StrictEvent, StrictWord
from warfence.parity.strict.launch import Launch
from warfence.parity.strict.machine import Item, Machine, Queue
from warfence.parity.strict.outputs import StrictOutputs
from warfence.races.check.events import Event


class StrictForward:
    """Implements `warfence.core.backend.Forward`. `fixed`: tables and weights (frozen) and state."""

    def __init__(
        self, program: ForwardProgram, machine: Machine, queue: Queue, fixed: Mapping[str, Array],
        kernels: Mapping[str, Kernel], marker_after: str | None, gated: Gated, word: StrictWord | None = None,
    ) -> None:  # fmt: skip
        self.program = program
        count = word.count() if word is not None else 0
        self.marker = Marker(marker_after, word, count) if marker_after is not None else None
        self.gates = StrictGates(program.name, program.gate_positions(gated), machine, queue) if gated else None
        self._machine, self._queue = machine, queue
        self._calls = {stage.name: bind(stage, fixed, kernels) for stage in program.stages}
        self._fixed = {s.name: {n: fixed[n] for n in (*s.reads, *s.state, *s.params)} for s in program.stages}
        self._steps = {region: program.steps(region, marker_after, gated) for region in Region}
        self._marker_event, self._word = StrictEvent(machine, f"marker after {marker_after}"), word
        self._launch: Launch | None = None  # being issued
        self._next = Region.LOAD_BATCH

    def load_batch(self, batch: Batch, launch: int) -> None:
        """Also gives up a launch that was not issued to its end (law 11): nothing more of that one is accepted."""
        self._machine.check(self._queue)
        if launch <= self._machine.launch:
            raise FenceError(
                f"'{self.program.name}': launch {launch} after launch {self._machine.launch}; launch numbers ascend and are "
                f"never used again, or a ticket of an earlier launch would look like a new one"
            )
        begun = Launch(self.program, batch, launch)
        self._give_up()
        self._machine.launch = launch
        self._launch, self._next = begun, Region.LOAD_BATCH
        if self.gates is not None:
            self.gates.issued(launch)
        self._issue(Region.LOAD_BATCH, begun, 0)

    def replay(self, launch: int) -> None:
        current = self._expect(Region.REPLAY, launch)
        generation = self._marker_event.arm(launch) if self.marker is not None else 0
        self._issue(Region.REPLAY, current, generation)
        if self.marker is not None:
            self.marker.issued(launch, self._marker_event)

    def tail(self, launch: int) -> StrictOutputs:
        current = self._expect(Region.TAIL, launch)
        self._issue(Region.TAIL, current, 0)
        self._launch = None
        outputs = StrictOutputs(launch, self._machine, self._queue)

        def take() -> None:
            outputs.over = True
            if self._queue.failure is None:
                self._guarded(launch, "outputs", lambda: outputs.fill(current.outputs()))

        over = Event("record", self._queue.name, launch, event=f"end of launch {launch}", generation=1)
        self._machine.enqueue(self._queue, Item((over,), take, always=True))
        return outputs

    # -- issuing

    def _expect(self, region: Region, launch: int) -> Launch:
        """The launch being issued, if this is its next region."""
        self._machine.check(self._queue)
        current, name = self._launch, region.name.lower()
        if current is None or current.number != launch:
            seen = "no launch is being issued" if current is None else f"launch {current.number} is being issued"
            raise FenceError(
                f"'{self.program.name}': {name} of launch {launch}, but {seen}; a forward issues one launch at a time: "
                f"load_batch, replay, tail"
            )
        if self._next is not region:
            raise FenceError(
                f"'{self.program.name}': {name} of launch {launch} out of order; its next region is "
                f"{self._next.name.lower()} (load_batch, replay, tail)"
            )
        return current

    def _issue(self, region: Region, launch: Launch, generation: int) -> None:
        for step in self._steps[region]:
            if step.stage is not None:
                item = self._stage_item(step.stage, launch)
            elif step.kind == "gate" and self.gates is not None:
                item = self.gates.item(step.name, launch.number)
            else:
                item = self._marker_item(step.name, launch.number, generation)
            self._machine.enqueue(self._queue, item)
        self._next = Region(min(region + 1, Region.TAIL))

    def _stage_item(self, stage: Stage, launch: Launch) -> Item:
        call, fixed = self._calls[stage.name], self._fixed[stage.name]

        def run() -> None:
            self._guarded(launch.number, stage.name, lambda: launch.run(stage, call, fixed))

        which = self._queue.name, launch.number, stage.name
        reads = (Event("read", *which, name, 0, fixed[name].size) for name in stage.reads)
        return Item((Event("stage", *which), *reads), run)

    def _marker_item(self, stage: str, launch: int, generation: int) -> Item:
        event, word = self._marker_event, self._word
        name, run = event.name, lambda: event.complete(generation)
        if word is not None:
            name, run = word.name, word.increment
        record = Event("record", self._queue.name, launch, event=name, generation=generation)
        return Item((record,), run, always=True)

    def _give_up(self) -> None:
        if self._launch is not None and self.gates is not None:
            for region in Region:
                if region >= self._next:
                    for step in self._steps[region]:
                        if step.kind == "gate":
                            self.gates.passed(step.name, self._launch.number)
        self._launch = None

    def _guarded(self, launch: int, stage: str, work: Callable[[], None]) -> None:
        """Run work of a launch. When it fails, nobody will reach a gate any more."""
        try:
            work()
        except Exception as error:
            if self.gates is not None:
                self.gates.abort()
            if isinstance(error, FenceError):
                raise
            raise StageError(launch, stage, error) from error
