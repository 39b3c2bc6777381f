"""The law about observers: 16. What a backend offers for looking at it changes nothing of what it does."""

from __future__ import annotations

from warfence.core.abilities import ABILITIES, FindsBoundary, TimesStages
from warfence.core.modes import FenceMode
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.parity.laws.base import Bench, decode_cell, require
from warfence.parity.rig import Rig, batch_of, program_of


def observers_change_nothing(bench: Bench) -> None:
    """Law 16. One forward on a backend that times its stages and has looked for its boundary, beside one that was left alone."""
    left_alone, observed = bench.rig, bench.another_rig()
    try:
        _look(observed)
        for what, expected, seen in zip(SAID, _behaviour(left_alone), _behaviour(observed), strict=True):
            require(seen == expected, f"looked at, the backend has {what} {seen}; left alone it has {expected}")
    finally:
        observed.backend.close()


SAID = ("the abilities", "the marker after", "gates at", "the tokens", "a fence that opens, and a write that lands, at")


def _look(rig: Rig) -> None:
    """All that may be asked before a forward is compiled."""
    backend = rig.backend
    if isinstance(backend, TimesStages):
        backend.time_stages().start()
    if isinstance(backend, FindsBoundary):
        before = _tables(rig)
        backend.find_boundary(program_of(decode_cell("captured"), rig.small.config)[0])
        require(_tables(rig) == before, "looking for the boundary changed a shared table")


def _behaviour(rig: Rig) -> tuple[object, ...]:
    cell = decode_cell("captured", rig.backend.capabilities.external_markers)
    planned, marker = rig.planned(cell)
    gates = planned.forward.gates
    tokens = rig.fixture.execute(planned, batch_of(cell)).result()["next_tokens"].tolist()
    release = rig.prober(cell).release(FenceMode.FINE)
    return (
        [one.__name__ for one in ABILITIES if isinstance(rig.backend, one)],
        marker,
        gates.positions if gates is not None else None,
        tokens,
        (release.opened, release.landed),
    )


def _tables(rig: Rig) -> list[bytes]:
    return [rig.tables.snapshot_to_host(name).tobytes() for name in (REQ_TO_TOKEN, FULL_TO_SWA)]
