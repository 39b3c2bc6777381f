"""Laws about declarations, staging memory and tokens: 9, 12, 14, 15."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from warfence.core import batch as batches
from warfence.core.attention import CAPTURED, LIVE, SNAPSHOT, UNKNOWN, AttentionBackend
from warfence.core.batch import Batch
from warfence.core.modes import FenceMode, ForwardMode, SharedReadEnds
from warfence.parity.cells import DONATION, Cell
from warfence.parity.laws.base import DECODE, Bench, decode_cell, require
from warfence.parity.probe import END
from warfence.parity.rig import batch_of
from warfence.parity.small import first_difference, serve
from warfence.serve.engine import Engine


def composites_answer_the_latest(bench: Bench) -> None:
    """Law 9. A composite says the latest of its children, in every mode; unknown, and nobody, are the latest of all."""
    for full, sliding in itertools.product((SNAPSHOT, CAPTURED, LIVE, UNKNOWN), repeat=2):
        composite = AttentionBackend("law", full, sliding, (1,))
        for mode in ForwardMode:
            ends = [full.shared_read_ends(mode), sliding.shared_read_ends(mode)]
            seen = composite.shared_read_ends(mode)
            require(
                seen is max(ends),
                f"{mode.value}: a composite of {full.name} and {sliding.name} says {seen.name}, its children say "
                f"{', '.join(e.name for e in ends)}",
            )
    require(SharedReadEnds.latest([]) is SharedReadEnds.UNKNOWN, "a composite without children must be UNKNOWN")


def staging_memory_is_a_shared_table(bench: Bench) -> None:
    """Law 12. The host packs the next batch while a launch that has not begun still needs its own."""
    rig, cell = bench.rig, decode_cell("captured")
    planned, _ = rig.planned(cell)
    layout = planned.forward.program.layout
    row = batch_of(cell)
    wanted = _tokens(bench, row)
    with rig.fixture.held(planned, row, planned.forward.program.stages[-1].name) as first:
        staged = batch_of(cell)
        second = rig.fixture.execute(planned, staged)  # stands behind the first
        third = batches.pack(layout, [])  # padding only: what the second launch must not see
    seen = [o.result()["next_tokens"].tolist() for o in (first, second)]
    bench.forward.synchronize()
    require(
        seen[1] == wanted, f"a batch packed later changed the tokens of a launch in flight: {seen[1]}, not {wanted}"
    )
    require(not np.shares_memory(staged.words, third.words), "two packed batches share their memory")
    require(not staged.words.flags.writeable, "a packed batch can still be written by the host")


def _tokens(bench: Bench, batch: Batch) -> list[int]:
    planned, _ = bench.rig.planned(decode_cell("captured"))
    result = bench.rig.fixture.execute(planned, batch).result()["next_tokens"].tolist()
    bench.forward.synchronize()
    return list(result)


def capabilities_are_kept(bench: Bench) -> None:
    """Law 14. What a backend says it can do, it does; what it cannot do has a reason."""
    backend = bench.rig.backend
    can = backend.capabilities
    planned, _ = bench.rig.planned(decode_cell("captured"))
    forward = planned.forward
    require(
        (forward.marker is not None) is can.external_markers,
        f"external_markers is declared {can.external_markers}, and a forward compiled with a marker has "
        f"{'one' if forward.marker else 'none'}",
    )
    require((forward.gates is not None) is can.gates, f"gates is declared {can.gates}, and gated=True did otherwise")
    for name in ("external_markers", "guards_writes", "gates", "precise_release"):
        require(getattr(can, name) or bool(can.reasons.get(name)), f"{name} is declared False without a reason")
    if can.guards_writes and can.gates:
        program = forward.program
        release = bench.rig.prober(Cell(DECODE, "captured", True, DONATION, 1)).release(FenceMode.OFF)
        order = [*program.gate_positions(), END]
        boundary = program.read_boundary()
        assert boundary is not None
        require(
            order.index(release.landed) >= order.index(boundary.name),
            f"guards_writes is declared, and without a barrier a write landed at '{release.landed}', before the boundary "
            f"'{boundary.name}'",
        )


def tokens_do_not_depend_on_the_fence(bench: Bench) -> None:
    """Law 15. Overlapped == serial == numpy reference, with speculation too."""
    _same_tokens(bench.engine, bench.small.expected[False])
    _same_tokens(bench.spec_engine, bench.small.expected[False])


def _same_tokens(engine: Engine, expected: list[list[int]]) -> None:
    hows: dict[str, dict[str, Any]] = {
        "overlapped, fine": {"fence": FenceMode.FINE},
        "overlapped, coarse": {"fence": FenceMode.COARSE},
        "serial": {"serial": True},
    }
    outputs = {}
    for how, options in hows.items():
        requests, _ = serve(engine, **options)
        outputs[how] = [r.output for r in requests]
        wrong = first_difference(requests, expected)
        require(wrong is None, f"{how}: {wrong} (numpy reference)")
    first, *others = outputs
    for how in others:
        require(outputs[how] == outputs[first], f"the tokens of '{how}' are not those of '{first}'")
