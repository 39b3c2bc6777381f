"""What a machine has to make for a trace: its lanes, and the cells of every memory that its steps touch."""

from __future__ import annotations

from collections.abc import Mapping

from warfence.races.scenarios.operations import Memories
from warfence.races.scenarios.steps import Trace


def lanes(trace: Trace) -> list[str]:
    """The names of all lanes that a call is for, or waits for."""
    named = (name for op in trace.ops for name in (op.lane, op.other if op.kind in ("waits", "syncs", "takes") else ""))
    return [name for name in dict.fromkeys(named) if name not in ("host", "")]


def sizes(trace: Trace, memories: Memories) -> Mapping[str, int]:
    """Cells of each memory, by the name that the trace gives it: `x`, or `x, block 2`."""
    names = dict.fromkeys(one.memory for step in trace.steps for one in step.reaches)
    return {name: memories.size[name.partition(",")[0]] for name in names}
