"""A third backend in one file: numpy kernels on worker threads. Read it from top to bottom. `warfence backends new NAME` writes
its empty form, and that of `threads_package.py`. Given: `WorkerLane` (a queue with its thread), `HostEvent` (a point that a lane
reaches), `HostGates`, and `bind`, which runs a stage. Left to write: what follows. It passes the suite:
    pytest parity_tests --backend examples.threads_backend:ThreadsBackend
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future

import numpy as np

from warfence.core.backend import FORWARD, ArraySpec, Capabilities, Lane, Marker
from warfence.core.batch import Batch
from warfence.core.errors import InputError, StageError
from warfence.core.gates import HostGates
from warfence.core.modes import Region
from warfence.core.program import START, ForwardProgram, Gated
from warfence.host.lanes import HostEvent, WorkerLane
from warfence.host.own import own_lane
from warfence.host.stage_calls import bind
from warfence.parity.kernels import KERNELS, Array


class Tables:
    """Step 1, the shared tables. A write is enqueued here, and lands when the lane's thread comes to it.
    Nothing in this class protects a reader: that is the fence's task, and the reason that there is one."""

    def __init__(self, specs: Mapping[str, ArraySpec]) -> None:
        self.arrays: dict[str, Array] = {name: np.zeros(spec.shape, spec.dtype) for name, spec in specs.items()}
        self._writers: set[WorkerLane] = set()

    def write(self, lane: Lane, name: str, cells: Array, values: Array) -> None:
        mine = own_lane(lane, WorkerLane, name)
        if name not in self.arrays:
            raise InputError(f"no table '{name}'; tables: {', '.join(self.arrays)}")
        self._writers.add(mine)
        mine.submit(lambda: self.arrays[name].put(cells, values))

    def snapshot_to_host(self, name: str) -> Array:
        for lane in self._writers:
            lane.synchronize()
        return self.arrays[name].copy()


class Outputs(Future[dict[str, Array]]):
    """Step 2, the results of one launch: a future, whose `result` is the one place in a step where the host waits."""

    launch: int
    device_s: float | None = None  # nobody measures here


class Forward:
    """Step 3, the forward: three regions, each enqueued here and run later by the forward lane's thread.
    `program.steps` says what a region does, in order: stages, the marker, gates. To capture is to keep that list."""

    def __init__(self, program: ForwardProgram, backend: ThreadsBackend, marker: str | None, gated: Gated) -> None:
        self.program, self._lane = program, backend.lane(FORWARD)
        self.marker = Marker(marker) if marker is not None else None
        self.gates = HostGates(program.gate_positions(gated)) if gated else None
        self._read_done = HostEvent()  # of the marker: one event, armed anew by each replay
        self._calls = {stage.name: bind(stage, backend.fixed, KERNELS) for stage in program.stages}
        self._steps = {region: program.steps(region, marker, gated) for region in Region}
        self._workspace: dict[str, Array] = {}

    def load_batch(self, batch: Batch, launch: int) -> None:
        self._lane.check()
        fields = {name: batch.view(name) for name in batch.layout.fields}  # views: the batch is never written again
        self._lane.submit(lambda: self._workspace.update(fields))
        self._lane.submit(lambda: self._run(Region.LOAD_BATCH, launch))

    def replay(self, launch: int) -> None:
        self._lane.check()
        generation = self._read_done.arm(launch)  # at the call: waits from now on are for this launch
        self._lane.submit(lambda: self._run(Region.REPLAY, launch, generation))
        self._lane.submit(lambda: self._read_done.complete(generation), always=True)  # also when a stage failed
        if self.marker is not None:
            self.marker.issued(launch, self._read_done)  # only from here on is there a ticket to hand over

    def tail(self, launch: int) -> Outputs:
        self._lane.check()
        outputs = Outputs()
        outputs.launch = launch
        self._lane.submit(lambda: self._run(Region.TAIL, launch))
        self._lane.submit(lambda: outputs.set_result({n: self._workspace[n].copy() for n in self.program.outputs}))
        self._lane.submit(lambda: None if outputs.done() else outputs.set_exception(self._lane.failure), always=True)
        return outputs

    def _run(self, region: Region, launch: int, generation: int = 0) -> None:
        at = START
        try:
            for step in self._steps[region]:
                at = step.name
                if step.kind == "stage":
                    self._calls[at](self._workspace)
                elif step.kind == "marker":
                    self._read_done.complete(generation)  # the read boundary: from here on the tables may be written
                elif self.gates is not None:
                    self.gates.pass_through(at)
        except Exception as error:
            if self.gates is not None:
                self.gates.abort()  # nobody will reach a gate any more
            raise StageError(launch, at, error) from error


class ThreadsBackend:
    """Step 4, the backend: says what it can do, keeps the arrays, and makes the parts above."""

    name = "threads"
    capabilities = Capabilities(
        external_markers=True, guards_writes=False, gates=True, precise_release=True,
        reasons={"guards_writes": "tables are written in place; only the fence protects them"},
    )  # fmt: skip

    def __init__(self, device: str = "cpu") -> None:
        self.device, self.compilations = device, 0
        self._lanes: dict[str, WorkerLane] = {}
        self.fixed: dict[str, Array] = {}  # tables, weights and state: arrays that never move

    def lane(self, name: str) -> WorkerLane:
        if name not in self._lanes:
            self._lanes[name] = WorkerLane(name)
        return self._lanes[name]

    def tables(self, specs: Mapping[str, ArraySpec]) -> Tables:
        made = Tables(specs)
        self.fixed |= made.arrays
        return made

    def load(self, params: Mapping[str, Array], state: Mapping[str, ArraySpec]) -> None:
        self.fixed |= {name: array.copy() for name, array in params.items()}
        self.fixed |= {name: np.zeros(spec.shape, spec.dtype) for name, spec in state.items()}

    def compile(self, program: ForwardProgram, *, marker_after: str | None = None, gated: Gated = False) -> Forward:
        program.index(marker_after or START)  # a stage that does not exist: InputError with the nearest names
        self.compilations += 1
        return Forward(program, self, marker_after, gated)

    def state_to_host(self, name: str) -> np.ndarray:
        self.lane(FORWARD).synchronize()
        return self.fixed[name].copy()

    def report(self) -> Mapping[str, object]:
        return {"numpy": np.__version__, "donation": "none: written in place", "refused": 0}

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()
