from __future__ import annotations

import numpy as np
import pytest

from warfence.core.backend import SCHEDULE, ArraySpec
from warfence.core.errors import InputError
from warfence_jax.backend import JaxBackend
from warfence_jax.compiler import aliased_arguments
from warfence_jax.donated import BUCKETS, NOWHERE

SPECS = {"t": ArraySpec((7, 1200))}


@pytest.fixture(scope="module", params=["donated", "aliased"])
def backend(request: pytest.FixtureRequest):
    made = JaxBackend(tables=request.param)
    made.made = made.tables(SPECS)
    yield made
    made.close()


@pytest.fixture
def donated():
    made = JaxBackend()
    yield made
    made.close()


def cells_and_values(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.permutation(8400)[:n].astype(np.int32), rng.integers(1, 1000, n).astype(np.int32)


def test_a_write_of_any_size_lands_and_compiles_nothing(backend: JaxBackend) -> None:
    tables, lane = backend.made, backend.lane(SCHEDULE)
    compiled = backend.compilations
    expected = np.zeros(8400, np.int32)
    for seed, n in enumerate((0, 1, 8, 9, 513, 4096, 5000, 2)):
        cells, values = cells_and_values(n, seed)
        expected[cells] = values
        tables.write(lane, "t", cells, values)
    np.testing.assert_array_equal(tables.snapshot_to_host("t"), expected.reshape(7, 1200))
    assert backend.compilations == compiled


def test_what_cannot_be_written_is_refused(backend: JaxBackend) -> None:
    tables, lane = backend.made, backend.lane(SCHEDULE)
    one = np.array([1], np.int32)
    with pytest.raises(InputError, match="no table 'u'; tables: t"):
        tables.write(lane, "u", one, one)
    for cell in (-1, 8400, NOWHERE):
        with pytest.raises(InputError, match=f"table 't': a write to cells {cell} to {cell}; allowed are 0 to 8399"):
            tables.write(lane, "t", np.array([cell], np.int32), one)
    with pytest.raises(InputError, match="table 't': 2 cells but 1 values in one write"):
        tables.write(lane, "t", np.array([1, 2], np.int32), one)


def test_a_donated_write_takes_the_memory_over(donated: JaxBackend) -> None:
    tables, lane = donated.tables(SPECS), donated.lane(SCHEDULE)
    first = tables.capture(lane, ["t"])["t"]
    pointer = first.handle.unsafe_buffer_pointer()
    for n in (*BUCKETS, 5000):
        tables.write(lane, "t", *cells_and_values(n))
        tables.snapshot_to_host("t")  # a copy: it must not keep the next write from taking the memory
    lane.synchronize()
    last = tables.capture(lane, ["t"])["t"]
    assert last.handle.unsafe_buffer_pointer() == pointer
    assert first.dead()
    assert not last.dead()
    report = donated.report()
    assert (report["donation"], report["writes_copied"], report["versions"]) == ("in place", 0, {"t": 5})


def test_the_text_of_each_write_executable_shows_the_alias(donated: JaxBackend) -> None:
    tables = donated.tables(SPECS)
    assert [aliased_arguments(tables.executable("t", bucket)) for bucket in BUCKETS] == [{0}] * len(BUCKETS)


def test_a_live_numpy_view_makes_the_write_copy_and_the_report_says_so(donated: JaxBackend) -> None:
    tables, lane = donated.tables(SPECS), donated.lane(SCHEDULE)
    view = np.asarray(tables.capture(lane, ["t"])["t"].handle)
    tables.write(lane, "t", *cells_and_values(3))
    lane.synchronize()
    assert not view.any()
    assert donated.report()["writes_copied"] == 1


def test_an_aliased_table_is_the_host_memory_itself() -> None:
    backend = JaxBackend(tables="aliased")
    try:
        tables, lane = backend.tables(SPECS), backend.lane(SCHEDULE)
        handle = tables.capture(lane, ["t"])["t"].handle
        cells, values = cells_and_values(3)
        tables.write(lane, "t", cells, values)
        lane.synchronize()
        assert tables.capture(lane, ["t"])["t"].handle is handle
        np.testing.assert_array_equal(np.asarray(handle).reshape(-1)[cells], values)
    finally:
        backend.close()
