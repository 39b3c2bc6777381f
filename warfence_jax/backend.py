"""The JAX backend: CPU, and a GPU with its tables on the CPU client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, ShapeDtypeStruct
from jaxtyping import Float32

from warfence.core.abilities import Found
from warfence.core.backend import FORWARD, PLAN, SCHEDULE, ArraySpec, Capabilities
from warfence.core.batch import Batch
from warfence.core.errors import InputError
from warfence.core.gates import WATCHDOG_S, HostGates
from warfence.core.modes import Region
from warfence.core.program import ForwardProgram, Gated
from warfence.host.cuda import DeviceWord, new_stream
from warfence.host.cuda_gates import StreamGates
from warfence_jax.aliased import AliasedTables
from warfence_jax.checked import last_reader
from warfence_jax.clock import Clock
from warfence_jax.compiler import Compiler, on
from warfence_jax.devices import find_devices, zeros
from warfence_jax.donated import DonatedTables
from warfence_jax.executables import Builder
from warfence_jax.fence_word import NOTHING_INSIDE, DonatedWord, HostMemory, Inside
from warfence_jax.forward import JaxForward
from warfence_jax.lanes import JaxLane
from warfence_jax.options import choose, no_device_tables
from warfence_jax.segments import cut
from warfence_jax.tables import Tables
from warfence_jax.tokens import Joints
from warfence_jax.tools.found import boundary_of
from warfence_jax.tools.timing import JaxTimer

if TYPE_CHECKING:
    from warfence_jax.gpu.lanes import StreamLane
UNGUARDED = {
    "aliased": "aliased tables are host memory that is written in place; only the fence protects them",
    "device": "tables on the device are written in place by streams of our own; only the fence protects them",
}
WARM_UP_RUNS = 3
ONE_THREAD = (
    "the CPU client runs what one thread dispatches in order: no write overtakes a forward; leave threaded=True"
)


class JaxBackend:
    """Implements `warfence.core.backend.Backend`.

    device: "cpu", or "gpu" = "cuda". tables: "donated" (the runtime guards writes too) or "aliased" (only the fence
    does), or "copied" (each write makes a new array and leaves the old one to its readers: to measure what donation saves).
    marker: "cut" or "word"; ticket: "event" or "value", which follows from the marker (`warfence_jax.options`).
    threaded: each lane dispatches on its own thread. False: in the caller's, which then pays for each dispatch,
    and on a GPU waits for the forward where a barrier is coarse (`warfence_jax.lanes` says why). Gates need threads, so
    the first gated forward starts them.
    """

    name = "jax"

    def __init__(
        self, device: str = "cpu", *, tables: str | None = None, marker: str | None = None, ticket: str | None = None,
        threaded: bool = True,
    ) -> None:  # fmt: skip
        no_device = no_device_tables(device)
        self._options = choose(tables, marker, ticket, no_device)
        self.devices = find_devices(device, self._options.tables == "device")
        self.device = "cpu" if self.devices.compute.platform == "cpu" else "cuda"
        self._kind = tables = self._options.tables
        self._threaded = threaded
        if tables == "aliased" and not threaded:
            raise InputError("backend jax: aliased tables are written by a lane's thread; leave threaded=True")
        self.first_count = 0  # of every word; tests begin at the end of the counter
        self._compiler = Compiler()
        self._joints = self._make_joints()
        self._clock = Clock()
        self._lanes: dict[str, JaxLane | StreamLane] = {}
        self._gates: list[HostGates | StreamGates] = []
        self._timer: JaxTimer | None = None
        self._tables: Tables | None = None
        self._params: dict[str, Array] = {}
        self.state: dict[str, Array] = {}
        overlaps = self._threaded or self.device == "cuda"
        reasons = {"guards_writes": UNGUARDED[tables]} if tables in UNGUARDED else {}
        reasons |= {} if overlaps else {"precise_release": ONE_THREAD}
        self.capabilities = Capabilities(
            external_markers=True,
            guards_writes=tables not in UNGUARDED,
            gates=True,
            precise_release=overlaps,
            value_tickets=self._options.by_value,
            ways={"hold": "", "cut": "", "word": "", "node": no_device},
            reasons=reasons,
        )

    @property
    def compilations(self) -> int:
        return self._compiler.compilations

    def lane(self, name: str) -> Any:
        if name not in self._lanes and self._kind == "device":
            from warfence_jax.gpu.lanes import StreamLane, XlaLane

            make = (
                XlaLane(name, self.devices.compute, self._open_gates)
                if name == FORWARD
                else StreamLane(name, new_stream())
            )
            self._lanes[name] = make
        if name not in self._lanes:
            self._lanes[name] = JaxLane(name, self._joints, threaded=self._threaded, on_failure=self._open_gates)
        return self._lanes[name]

    def tables(self, specs: Mapping[str, ArraySpec]) -> Tables:
        if wrong := [f"'{n}' ({s.dtype})" for n, s in specs.items() if s.dtype != "int32"]:
            raise InputError(f"backend jax: shared tables are int32; given were {', '.join(wrong)}")
        self._tables = made = self._make_tables(specs)
        return made

    def _make_tables(self, specs: Mapping[str, ArraySpec]) -> Tables:
        device = self.devices.tables
        if self._kind == "device":
            from warfence_jax.gpu.tables import DeviceTables

            tables = DeviceTables(specs, device)
            for name in (SCHEDULE, PLAN):
                tables.prepare(self.lane(name))
            return tables
        if self._kind == "aliased":
            return AliasedTables(specs, device)
        return DonatedTables(specs, device, self._compiler, donate=self._kind == "donated")

    def load(self, params: Mapping[str, Float32[np.ndarray, "..."]], state: Mapping[str, ArraySpec]) -> None:
        # A copy: the device array must not alias weights that somebody else owns (law 12).
        self._params = {n: jax.device_put(np.array(a), self.devices.compute) for n, a in params.items()}
        self.state.update({n: zeros(s, self.devices.compute) for n, s in state.items()})

    def find_boundary(self, program: ForwardProgram) -> Found:
        """Implements `warfence.core.abilities.FindsBoundary`."""
        if self._tables is None:
            raise InputError("backend jax: make the tables first, then find_boundary() can see who reads them")
        tables = {n: ShapeDtypeStruct(s.shape, s.dtype) for n, s in self._tables.specs.items()}
        state, params = (
            {n: ShapeDtypeStruct(a.shape, a.dtype) for n, a in of.items()} for of in (self.state, self._params)
        )
        return boundary_of(program, tables, state, params)

    def compiled_boundary(self, forward: Any) -> str | None:
        """Implements `warfence.core.abilities.SaysCompiled`."""
        return last_reader(forward.program, forward.executables)

    def compile(self, program: ForwardProgram, *, marker_after: str | None = None, gated: Gated = False) -> JaxForward:
        if marker_after is not None and program.stages[program.index(marker_after)].region is not Region.REPLAY:
            raise InputError(f"program '{program.name}': the marker's stage '{marker_after}' is not a replay stage")
        gates = self._make_gates(program, gated)
        return self._compile(program, marker_after, gated, gates, self._make_inside(program, marker_after))

    def _compile(
        self, program: ForwardProgram, marker_after: str | None, gated: Gated, gates: HostGates | StreamGates | None,
        inside: Inside,
    ) -> JaxForward:  # fmt: skip
        specs = self._tables.specs if self._tables is not None else {}
        tables = {n: on(self.devices.tables, s.shape, s.dtype) for n, s in specs.items()}
        # With a gate at every position it is there to be probed, and nobody will run it often.
        builder = Builder(
            program,
            self._compiler,
            gates,
            split=self.devices.split,
            quick=gated is True,
            marker_after=marker_after,
            event=inside.event,
            counts=inside.word is not None,
        )
        executables = [
            builder.build(
                segment,
                self.devices.tables if segment.on_tables else self.devices.compute,
                tables,
                {} if segment.on_tables and self.devices.split else self.state,
                {} if segment.on_tables and self.devices.split else self._params,
            )
            for segment in cut(program, marker_after, gated, self.devices.split, inside=self._options.marker != "cut")
        ]
        lane = self.lane(FORWARD)
        await_compiled = lane.after if isinstance(lane, JaxLane) else lane.await_compiled
        await_compiled(
            lambda: [executable.compiled for executable in executables]
        )  # who waits for the lane waits for it
        make = JaxForward if self._timer is None else self._timer.forward
        forward: JaxForward = make(
            program, lane, self._tables, self.state, executables, marker_after, gates, self._clock, inside,
            self._make_transfers(program),
        )  # fmt: skip
        if isinstance(gates, StreamGates):
            gates.before_closing(lambda: _warm_up(forward))
        return forward

    def _make_transfers(self, program: ForwardProgram) -> Any:
        if self._kind != "device":
            return None
        from warfence_jax.gpu.transfers import Transfers

        return Transfers(program.layout.words, self.lane(FORWARD), self.devices.compute)

    def _make_gates(self, program: ForwardProgram, gated: Gated) -> HostGates | StreamGates | None:
        if not gated:
            return None
        if self._kind == "device":
            gates: HostGates | StreamGates = StreamGates(program.gate_positions(gated))
        else:
            gates = HostGates(program.gate_positions(gated))
            self._threaded = True  # a gate blocks whoever dispatches, and that must not be the caller
            for lane in self._lanes.values():
                if isinstance(lane, JaxLane):
                    lane.use_thread()
        self._gates.append(gates)
        return gates

    def _make_inside(self, program: ForwardProgram, marker_after: str | None) -> Inside:
        """The marker inside of one forward; nothing where the chain is cut."""
        if marker_after is None:
            return NOTHING_INSIDE
        if self._options.marker == "node":
            from warfence_jax.gpu.lanes import StreamEvent

            return Inside(event=StreamEvent())
        if self._options.marker != "word":
            return NOTHING_INSIDE
        word = DonatedWord(program.name, self.devices.tables, self.first_count)  # where its readers run
        if self._kind == "device":
            return Inside(word, DeviceWord(word.address, program.name, WATCHDOG_S))
        return Inside(word, HostMemory(word.address, program.name))

    def barrier_latency_us(
        self, program: ForwardProgram, marker_after: str, batch: Batch, launches: Iterator[int], rounds: int
    ) -> list[float]:
        """Implements `warfence.core.abilities.TimesBarrier`."""
        if self._kind != "device":
            raise InputError(f"backend jax has no clock between its lanes with tables '{self._kind}'")
        from warfence_jax.gpu.latency import value_latency_us

        return value_latency_us(rounds)

    def time_stages(self) -> JaxTimer:
        """Implements `warfence.core.abilities.TimesStages`."""
        self._timer = JaxTimer()
        return self._timer

    def state_to_host(self, name: str) -> np.ndarray:
        self.lane(FORWARD).synchronize()
        return np.array(jnp.copy(self.state[name]))

    def report(self) -> Mapping[str, object]:
        sizes = {"params": self._params, "state": self.state}
        bytes_of = {f"{kind}_bytes": sum(a.nbytes for a in made.values()) for kind, made in sizes.items()}
        specs = self._tables.specs if self._tables is not None else {}
        bytes_of["tables_bytes"] = sum(4 * int(np.prod(s.shape)) for s in specs.values())
        copied = self._compiler.copied()
        donation = f"safe by copy: {', '.join(copied)}" if copied else "in place"
        return {
            "jax": jax.__version__,
            "donation": donation,
            **(self._tables.report() if self._tables else {}),
            **bytes_of,
        }

    def close(self) -> None:
        self._open_gates()
        for lane in self._lanes.values():
            lane.close()
        self._clock.close()
        if self._timer is not None:
            self._timer.close()

    def _open_gates(self) -> None:
        for gates in self._gates:
            gates.abort()

    def _make_joints(self) -> Joints:
        devices = self.devices.all()
        zero = {d: jax.device_put(np.int32(0), d) for d in devices}
        scalars = {d: [on(d, (), np.int32)] * 2 for d in devices}
        joins = {d: self._compiler.compile("join", lambda a, b: a + b, scalars[d])[0].get() for d in devices}
        return Joints(self.devices.tables, zero, joins)


def _warm_up(forward: JaxForward) -> None:
    """Run it a few times with its gates open: a kernel is loaded when it is first launched, which waits for a device that
    stands at a gate; and XLA captures only what has run before. A batch of zeros touches the reserved row alone."""
    for _ in range(WARM_UP_RUNS):
        forward.load_batch(Batch(forward.program.layout, np.zeros(forward.program.layout.words, np.int32)), 0)
        forward.replay(0)
        forward.tail(0).result()
