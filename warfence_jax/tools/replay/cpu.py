"""Scenarios on JAX's CPU client: worker lanes whose threads dispatch executables, each for one part of a launch.

A lane's thread stands at its waits and then in the runtime, as any thread does that dispatches a program with callbacks. A
record in a launch cuts it: an event is complete when the executable in front of it is.
"""

from __future__ import annotations

from typing import Literal

from warfence.races.replay.gates import StepGates
from warfence.races.replay.host_machine import HostMachine
from warfence.races.replay.machine import Machine, Seen
from warfence.races.replay.parts import outrun, parts_of
from warfence.races.replay.sizes import lanes, sizes
from warfence.races.scenarios.operations import Memories
from warfence.races.scenarios.steps import Trace
from warfence_jax.devices import find_devices
from warfence_jax.tools.replay.memory import Arrays

NO_BLOCKS = "which memory XLA hands out next is not the program's to say"
CUT = "a record inside a launch cuts it here, so its arrays are let go earlier than the scenario says"
HANDLES = (
    "a read takes the array that its handle names at the call, and here a write of another launch was called before it"
)


class JaxMachines:
    """Implements `warfence.races.replay.machine.Machines`. aliased: tables in host memory. donated: each write donates."""

    def __init__(self, tables: Literal["aliased", "donated"]) -> None:
        self.name = f"jax/cpu/{tables}"
        self.guards = tables == "donated"
        self._device = find_devices("cpu").tables

    def lacks(self, trace: Trace) -> str:
        if any(op.kind == "allocates" and op.memory for op in trace.ops):
            return NO_BLOCKS
        for op in trace.ops:
            kinds = {step.kind for step in op.steps}
            donates = any(one.verb == "donates" for step in op.steps for one in step.reaches)
            if donates and "records" in kinds:
                return CUT
        return HANDLES if self.guards and outrun(trace) else ""

    def make(self, trace: Trace, memories: Memories) -> Machine:
        gates, seen = StepGates(), Seen()
        kept = [op.other for op in trace.ops if op.kind == "keeps"]
        made = [n for n, kind in memories.kind.items() if kind == "array" or (self.guards and kind == "table")]
        handles = {name: memories.size[name] for name in [*made, *kept]}
        memory = Arrays(sizes(trace, memories), handles, self._device, gates, seen)
        memory.prepare(parts_of(trace))
        return HostMachine(lanes(trace), gates, seen, memory)
