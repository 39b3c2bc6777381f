"""Host memory that programs alias, and donation, under watch: the racy programs and their fixed twins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import Array

from warfence.core.errors import DeadHandleError, InputError
from warfence.races.check.findings import Finding, check
from warfence.races.check.log_file import read_log
from warfence.races.replay.judged import judge_all, recall_and_precision
from warfence.races.scenarios.library import catalogue
from warfence_jax.aliased import aligned_zeros
from warfence_jax.tools.replay.watched import HostWatchPlayer
from warfence_jax.tools.watch import HostWatch, watch_host

SIZE = 1024


def host_array() -> np.ndarray:
    """Zeroed int32 [SIZE] that starts where the CPU client aliases it."""
    return aligned_zeros((SIZE,))


@jax.jit
def read(table: Array) -> Array:
    """Any program that reads the table."""
    return table + 1


def put_row(table: Array, value: Array) -> Array:
    return table.at[0].set(value)


@pytest.fixture(autouse=True, scope="module")
def _on_the_cpu_client() -> Iterator[None]:
    """Only there is host memory aliased."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.fixture
def w() -> Iterator[HostWatch]:
    with watch_host() as watch:
        yield watch


@pytest.fixture(scope="module")
def write() -> jax.stages.Compiled:
    """table[0] = value, the table donated."""
    table = jax.ShapeDtypeStruct((SIZE,), np.int32)
    return jax.jit(put_row, donate_argnums=0).lower(table, jax.ShapeDtypeStruct((), np.int32)).compile()


def only(w: HostWatch) -> Finding:
    (finding,) = w.check().findings
    return finding


def fresh() -> Array:
    return jnp.arange(SIZE, dtype=np.int32) + 1  # memory that XLA owns


def test_a_write_to_memory_that_a_dispatched_program_aliases_is_a_race_with_both_places(w: HostWatch) -> None:
    n = host_array()
    a = w.put(n, "table")
    assert w.aliases(a)
    w.call(read, a, stage="forward")
    with w.writing(n):
        n[:] = 7
    race = only(w)
    assert race.kind == "race"
    assert "read of table[0:4096] by 'forward' of launch 1 on lane forward" in race.what
    assert "write of table[0:4096] by 'write table' on lane host" in race.what
    assert all("test_watch_host.py" in place for place in race.where)


def test_the_race_is_real_the_program_reads_what_the_host_wrote_after_it_was_dispatched(w: HostWatch) -> None:
    reached, written = threading.Event(), threading.Event()

    def stand() -> np.ndarray:
        reached.set()
        assert written.wait(30)
        return np.zeros((), np.int32)

    held = jax.jit(lambda table: table + jax.pure_callback(stand, jax.ShapeDtypeStruct((), np.int32)))
    n = host_array()
    a = w.put(n, "table", jax.devices("cpu")[0])
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(w.call, held, a)  # a program with a callback runs in the thread that dispatches it
        assert reached.wait(30)
        with w.writing(n):
            n[:] = 7
        written.set()
        assert int(call.result()[0]) == 7
    assert only(w).kind == "race"


def test_waiting_for_an_output_orders_the_write_and_waiting_for_the_alias_does_not(w: HostWatch) -> None:
    n = host_array()
    a = w.put(n, "table")
    out = w.call(read, a)
    w.wait(a)
    with w.writing(n):
        n[:4] = 7
    assert only(w).kind == "race"
    w.events.clear()
    w.wait(w.call(read, a))
    with w.writing(n):
        n[:4] = 8
    assert w.check().findings == ()
    assert int(w.wait(out)[-1]) == 1


def test_a_copy_is_not_aliased(w: HostWatch) -> None:
    n = w.guard(host_array(), "table")
    w.call(read, w.put(np.copy(n), "copied by hand"))
    with w.writing(n):
        n[:] = 7
    odd = np.zeros(SIZE + 32, np.int32)
    odd = odd[next(i for i in range(32) if odd[i:].ctypes.data % 64 == 4) :]
    a = w.put(odd, "not aligned")
    assert not w.aliases(a)
    w.call(read, a)
    with w.writing(odd):
        odd[:] = 7
    assert int(w.wait(w.call(read, a))[0]) == 1
    assert w.check().findings == ()


def test_a_numpy_argument_of_a_call_is_aliased_too(w: HostWatch) -> None:
    n = w.guard(host_array(), "argument")
    w.call(read, n)
    with w.writing(n):
        n[:] = 7
    assert "read of argument[0:4096]" in only(w).what


def test_a_part_that_no_call_reads_can_be_written(w: HostWatch) -> None:
    n = w.guard(host_array(), "ring")
    w.call(read, n[: SIZE // 2])
    with w.writing(n[SIZE // 2 :]) as part:
        part[:] = 7
    assert w.check().findings == ()
    with w.writing(n[SIZE // 4 : SIZE // 2]) as part:
        part[:] = 7
    assert "write of ring[1024:2048]" in only(w).what


def test_a_write_that_is_not_declared_fails_where_it_stands(w: HostWatch) -> None:
    n = host_array()
    w.put(n, "table")
    with pytest.raises(ValueError, match="read-only"):
        n[0] = 1
    with w.writing(n):
        n[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        n[0] = 2


def test_arrays_are_what_they_were_after_the_watch() -> None:
    n = host_array()
    with watch_host() as w:
        w.guard(n, "table")
    n[0] = 1
    assert n.flags.writeable


def test_a_call_inside_a_write_races_with_the_rest_of_it(w: HostWatch) -> None:
    n = w.guard(host_array(), "table")
    with w.writing(n):
        n[0] = 1
        w.call(read, n)
        n[1] = 1
    assert only(w).kind == "race"


def test_what_is_watched_twice_or_not_at_all_is_refused(w: HostWatch) -> None:
    n = w.guard(host_array(), "table")
    with pytest.raises(InputError, match="'table' is watched already"):
        w.guard(host_array(), "table")
    with pytest.raises(InputError, match="'part' shares memory with 'table'"):
        w.guard(n[4:], "part")
    with pytest.raises(InputError, match="not watched; watched: table"), w.writing(host_array()):
        pass


def test_a_donation_waits_for_the_readers_and_is_no_race(w: HostWatch, write: jax.stages.Compiled) -> None:
    table, value = fresh(), jnp.int32(5)
    w.call(read, table)
    written = w.call(write, table, value, lane="schedule", stage="write", donated=(0,))
    assert (w.check().findings, w.refused) == ((), [])
    assert int(w.wait(written)[0]) == 5
    first = len(w.events)
    w.call(read, written)
    (reads,) = (event for event in w.events[first:] if event.kind == "read")
    assert reads.resource == "array 1"  # the new handle lies in the memory of the old one


def test_two_donors_of_one_handle_are_refused_with_both_places(w: HostWatch, write: jax.stages.Compiled) -> None:
    table, value = fresh(), jnp.int32(5)
    w.call(write, table, value, lane="schedule", stage="first", donated=(0,))
    with pytest.raises(DeadHandleError) as caught:
        w.call(write, table, value, lane="plan", stage="second", donated=(0,))
    first, second = str(caught.value).split(" takes array 1, a handle that ")[::-1]
    assert first.startswith("'first' at watch/test_watch_host.py:")
    assert second.startswith("'second' at watch/test_watch_host.py:")


def test_a_donation_with_a_live_view_is_safe_by_copy_and_said_to_be(w: HostWatch, write: jax.stages.Compiled) -> None:
    table, value = fresh(), jnp.int32(5)
    view = np.asarray(table)
    w.call(write, table, value, lane="schedule", stage="write", donated=(0,))
    (refused,) = w.refused
    assert (refused.stage, refused.argument) == ("write", 0)
    assert "view of it is alive" in refused.why
    assert view[0] == 1
    assert w.check().findings == ()


def test_a_donation_that_no_output_can_take_is_said_to_be_unusable(w: HostWatch) -> None:
    head = jax.jit(lambda table: table[:4], donate_argnums=0)
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        w.call(head, fresh(), donated=(0,))
    assert "no output has its shape and type" in w.refused[0].why


def test_a_log_is_written_for_the_command(w: HostWatch, tmp_path: Path) -> None:
    n = w.guard(host_array(), "table")
    w.call(read, n)
    with w.writing(n):
        n[0] = 1
    w.write(tmp_path / "log")
    assert check(read_log(tmp_path / "log")).kinds() == {"race"}


def test_every_program_about_host_memory_and_donation_gets_its_verdict() -> None:
    results = judge_all(catalogue(), HostWatchPlayer())
    assert [one for one in results if not one.right] == []
    assert recall_and_precision(results) == (1.0, 1.0)
    played = {one.id: one for one in results if one.verdict}
    assert played.keys() >= {one.id for one in catalogue() if one.group == "alias and donation"}
    assert "takes array 1, a handle that 'step 0'" in played["double-donation"].refused
