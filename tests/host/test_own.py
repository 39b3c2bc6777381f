"""A table is written on lanes of its own backend, and a lane of another one is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from examples.threads_backend import Tables
from warfence.core.backend import ArraySpec
from warfence.core.errors import FenceError
from warfence.host.lanes import WorkerLane
from warfence.host.own import own_lane
from warfence.parity.strict.backend import StrictBackend

MESSAGE = "table 't' was to be written on lane 'schedule' of another backend; lanes order only each other"


def test_an_own_lane_is_given_back() -> None:
    lane = WorkerLane("schedule")
    assert own_lane(lane, WorkerLane, "t") is lane
    lane.close()


def test_a_lane_of_another_backend_is_refused() -> None:
    tables, foreign = Tables({"t": ArraySpec((1, 4))}), StrictBackend().lane("schedule")
    with pytest.raises(FenceError, match=f"^{MESSAGE}$"):
        tables.write(foreign, "t", np.array([1]), np.array([7]))
    assert not tables.snapshot_to_host("t").any()


def test_so_it_is_on_torch() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from warfence_torch.tables import HostTables

    tables = HostTables({"t": ArraySpec((1, 4))})
    with pytest.raises(FenceError, match=MESSAGE):
        tables.write(StrictBackend().lane("schedule"), "t", np.array([1], np.int32), np.array([7], np.int32))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["donated", "aliased"])
def test_so_it_is_on_jax(kind: str) -> None:
    pytest.importorskip("jax", reason="jax is not installed")
    from warfence_jax.backend import JaxBackend

    backend = JaxBackend(tables=kind)
    tables = backend.tables({"t": ArraySpec((1, 4))})
    with pytest.raises(FenceError, match=MESSAGE):
        tables.write(StrictBackend().lane("schedule"), "t", np.array([1], np.int32), np.array([7], np.int32))
    backend.close()
