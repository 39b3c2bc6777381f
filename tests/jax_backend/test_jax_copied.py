"""Tables whose writes do not donate: a reader keeps the version that it has captured."""

from __future__ import annotations

import numpy as np

from warfence.core.backend import FORWARD, SCHEDULE, ArraySpec
from warfence_jax.backend import JaxBackend


def test_a_write_leaves_the_old_version_to_its_readers() -> None:
    backend = JaxBackend(tables="copied")
    try:
        assert backend.capabilities.guards_writes
        tables = backend.tables({"t": ArraySpec((2, 4))})
        before = tables.capture(backend.lane(FORWARD), ["t"])["t"]
        cells = np.array([1, 6], np.int32)
        tables.write(backend.lane(SCHEDULE), "t", cells, np.array([7, 8], np.int32))
        assert tables.snapshot_to_host("t").ravel().tolist() == [0, 7, 0, 0, 0, 0, 8, 0]
        assert not before.dead()
        assert np.array(before.handle).sum() == 0
        report = tables.report()
        assert (report["tables"], report["writes_copied"], report["writes_held"]) == ("copied", 1, 0)
        assert backend.report()["donation"] == "in place"
    finally:
        backend.close()
