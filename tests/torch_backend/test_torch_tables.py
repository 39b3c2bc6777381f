"""Tables that two lanes write: the schedule, and the plan beside it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from warfence.core.backend import PLAN, SCHEDULE, ArraySpec
from warfence_torch.backend import TorchBackend


@pytest.mark.parametrize("slow", [SCHEDULE, PLAN])
def test_a_snapshot_waits_for_every_lane_that_wrote(slow: str) -> None:
    """Whichever lane is behind, and whichever wrote last."""
    backend, held = TorchBackend(), threading.Event()
    tables = backend.tables({"t": ArraySpec((2, 2)), "u": ArraySpec((1, 1))})
    backend.lane(slow).submit(lambda: held.wait(10))
    for cell, name in enumerate((SCHEDULE, PLAN, SCHEDULE)):
        tables.write(backend.lane(name), "t", np.array([cell], np.int32), np.array([cell + 1], np.int32))
    assert tables.snapshot_to_host("u").tolist() == [[0]]  # nobody wrote here: nobody is waited for
    threading.Timer(0.05, held.set).start()
    assert tables.snapshot_to_host("t").tolist() == [[1, 2], [3, 0]]
    backend.close()
