"""Laws about what may happen while a forward is held: 1, 2, 3, 8, 10, 13."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from warfence.core.attention import make_attention
from warfence.core.errors import InputError
from warfence.core.forwards import PlannedForward
from warfence.core.modes import FenceMode, ForwardMode, Region, WarReadDonePolicy
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN, ForwardProgram
from warfence.parity.laws.base import Bench, decode_cell, host_order, require, speculative_cells
from warfence.parity.probe import END
from warfence.parity.rig import CONTEXT, SPARE_ROW, Rig, batch_of, layout
from warfence.serve.fixture import Fixture
from warfence.serve.model.program import build, sliding_layers

READING = ("snapshot", "captured", "live")
SETTLE_S = 0.1


def no_write_before_earlier_reads(bench: Bench) -> None:
    """Law 1. Held before each shared read in turn, no write to any table lands, under the fine and the coarse fence."""
    rig = bench.rig
    for attention in READING:
        planned, _ = rig.planned(decode_cell(attention))
        program = planned.forward.program
        for fence in (FenceMode.FINE, FenceMode.COARSE):
            for reader in program.readers():
                for table in (REQ_TO_TOKEN, FULL_TO_SWA):
                    landed = _write_while_held(rig.fixture, planned, program.before(reader.name), table, fence)
                    require(
                        not landed,
                        f"'{program.name}', {fence.value} fence: held before '{reader.name}', a write to '{table}' landed",
                    )


def _write_while_held(fixture: Fixture, planned: PlannedForward, position: str, table: str, fence: FenceMode) -> bool:
    # A cell that no row of the batch uses, so the result stays what it is.
    cell = SPARE_ROW * CONTEXT if table == REQ_TO_TOKEN else 0
    with fixture.held(planned, batch_of(decode_cell("captured")), position) as outputs:
        fixture.barrier(outputs.launch, fence)
        fixture.write(table, [cell], [0])
        landed = fixture.schedule.settle(SETTLE_S)
    outputs.result()
    fixture.settle()
    return landed


def released_at_the_boundary(bench: Bench) -> None:
    """Law 2. The measured release point is the read boundary: not before it, and with a fine ticket not after it."""
    rig = bench.rig
    markers = rig.backend.capabilities.external_markers
    for cell in (*(decode_cell(a, markers) for a in READING), *speculative_cells("captured", markers)):
        planned, marker = rig.planned(cell)
        program = planned.forward.program
        boundary = program.read_boundary()
        assert boundary is not None
        release = rig.prober(cell).release(FenceMode.FINE)
        order = [*program.gate_positions(), END]
        early = order.index(release.landed) < order.index(boundary.name)
        require(not early, f"'{program.name}' reads until '{boundary.name}' but a write lands at '{release.landed}'")
        published = planned.decision.policy is not WarReadDonePolicy.NONE
        fine = published and (boundary.region is Region.LOAD_BATCH or marker is not None)
        if fine and rig.backend.capabilities.precise_release:
            seen = f"the barrier opens at '{release.opened}' and a write lands at '{release.landed}'"
            require(
                release.landed == release.opened == boundary.name, f"'{program.name}': {seen}, not at '{boundary.name}'"
            )


def nothing_published_is_coarse(bench: Bench) -> None:
    """Law 3. An unknown backend, and a forced coarse barrier, release only after the whole forward."""
    rig = bench.rig
    for attention, fence in (
        ("unknown", FenceMode.FINE),
        ("snapshot", FenceMode.COARSE),
        ("captured", FenceMode.COARSE),
    ):
        release = rig.prober(decode_cell(attention)).release(fence)
        require(
            release.opened == release.landed == END,
            f"attention '{attention}', {fence.value} fence: the barrier opens at '{release.opened}', not after the forward",
        )


def missing_marker_degrades_later(bench: Bench) -> None:
    """Law 8. Without its marker an in-graph boundary is released after the replay; markers belong to one forward."""
    rig = bench.rig
    for attention in ("captured", "live"):
        without, marker = rig.planned(decode_cell(attention, marker=False))
        program = without.forward.program
        boundary = program.read_boundary()
        assert boundary is not None
        require(marker is None, f"'{program.name}' was compiled without a marker and has one after '{marker}'")
        release = rig.prober(decode_cell(attention, marker=False)).release(FenceMode.FINE)
        order = [*program.gate_positions(), END]
        require(
            order.index(release.landed) >= order.index(boundary.name),
            f"'{program.name}' has no marker and releases at '{release.landed}', before its boundary '{boundary.name}'",
        )
        beside, _ = rig.planned(decode_cell(attention, marker=True))
        require(
            beside.forward.marker is None or beside.decision.policy is not without.decision.policy,
            f"'{program.name}': a sibling's marker changed the policy of the forward that has none",
        )


def snapshot_once_and_use_it(bench: Bench) -> None:
    """Law 10. Once the batch is loaded, poisoned tables change nothing; a missing snapshot is an error before any write."""
    rig = bench.rig
    cell = decode_cell("snapshot")
    planned, _ = rig.planned(cell)
    fixture, program = rig.fixture, planned.forward.program
    last_load = program.region(Region.LOAD_BATCH)[-1].name
    right = _result(rig, planned)
    before = {name: rig.tables.snapshot_to_host(name) for name in (REQ_TO_TOKEN, FULL_TO_SWA)}
    with fixture.held(planned, batch_of(cell), last_load) as outputs:
        for name, table in before.items():
            fixture.write(name, np.arange(table.size), np.ones(table.size))
        fixture.schedule.settle(1.0)
    poisoned = dict(outputs.result())
    fixture.lane.synchronize()
    for name, table in before.items():
        fixture.write(name, np.arange(table.size), table.reshape(-1))
    fixture.schedule.synchronize()
    same = all(np.array_equal(poisoned[n], right[n]) for n in right)
    require(
        same, f"'{program.name}': the tables were poisoned after the batch was loaded, and the output followed them"
    )

    config = bench.small.config
    whole = build(
        config, make_attention("snapshot", sliding_layers(config)), ForwardMode.DECODE, layout(cell), sampled=False
    )
    stages = tuple(s for s in whole.stages if s.name != "swa_translate")
    try:
        ForwardProgram("no snapshot", whole.mode, whole.layout, stages, whole.outputs)
    except InputError as error:
        require("swa_table" in str(error), f"a missing SWA snapshot is reported without its name: {error}")
    else:
        require(False, "a program whose sliding layers have no snapshot was accepted")


def read_done_says_nothing_of_writes(bench: Bench) -> None:
    """Law 13. The ticket comes while outputs and relay are still to be written; those edges stand by themselves."""
    rig = bench.rig
    cell = decode_cell("snapshot")
    planned, _ = rig.planned(cell)
    fixture, forward = rig.fixture, planned.forward
    sampled = forward.program.region(Region.REPLAY)[-1].name
    things = ((fixture.lane, "wait_lane", "forward waits"), (forward, "load_batch", "load"))
    with host_order(rig.backend, *things) as notes:
        right = [_result(rig, planned, from_relay=i > 0)["next_tokens"].tolist() for i in range(2)]
    require(
        notes == ["forward waits", "load"] * 2,
        f"before each load_batch the forward lane must wait for the schedule lane (read after write); host order: {notes}",
    )
    # The relay: launch B is issued while A is held between its sample and its relay stage, and still takes A's token.
    with fixture.held(planned, batch_of(cell), sampled) as first:
        ticket = fixture.runner.mailbox.take()
        require(
            ticket is not None and ticket.source.done(), "held after the last read, the read-done ticket is not done"
        )
        second = fixture.execute(planned, batch_of(cell, from_relay=True))
    seen = [outputs.result()["next_tokens"].tolist() for outputs in (first, second)]
    fixture.lane.synchronize()
    require(seen == right, f"tokens {seen} instead of {right}: the relay did not carry a token from launch to launch")


def _result(rig: Rig, planned: PlannedForward, from_relay: bool = False) -> Mapping[str, np.ndarray]:
    """The outputs of one plain launch."""
    outputs = rig.fixture.execute(planned, batch_of(decode_cell("snapshot"), from_relay=from_relay))
    result = {name: array.copy() for name, array in outputs.result().items()}
    rig.fixture.lane.synchronize()
    return result
