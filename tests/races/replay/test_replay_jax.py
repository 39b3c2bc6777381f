"""A dozen scenarios on JAX: host memory that executables alias is spoilt, arrays that are donated are held or refused."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from warfence.core.errors import InputError
from warfence.races.replay.registry import machines
from warfence.races.replay.verdicts import replay
from warfence.races.scenarios.library import find
from warfence_jax.tools.replay.cpu import JaxMachines

pytestmark = pytest.mark.slow

SHOWN = {  # scenario -> verdict with aliased tables, and with donated ones
    "no-fence": ("bad", "held"),
    "coarse": ("ok", "ok"),
    "in-graph-late-read": ("bad", "held"),
    "in-graph": ("ok", "ok"),
    "re-record": ("bad", "held"),
    "alias": ("bad", "bad"),
    "alias-copied": ("ok", "ok"),
    "host-staging": ("bad", "bad"),
    "wait-cycle": ("cycle", "cycle"),
    "coarse-early": ("over", "over"),
    "second-thread": ("bad", "held"),
    "dead-handle": ("error", "error"),
    "double-donation": ("error", "error"),
    "donation-hold": ("ok", "ok"),
    "donation-hold-cut": ("ok", "ok"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_the_lanes_show(name: str) -> None:
    both = [replay(find(name), JaxMachines(tables)) for tables in ("aliased", "donated")]
    assert tuple(one.verdict for one in both) == SHOWN[name], [one.shown for one in both]
    assert all(one.agrees for one in both)


def test_a_dead_handle_is_refused_by_the_runtime_itself() -> None:
    (shown,) = replay(find("dead-handle"), JaxMachines("aliased")).shown
    assert "refused by the runtime, line" in shown.said
    assert "deleted" in shown.said


def test_a_donation_is_held_while_the_reader_stands() -> None:
    (shown,) = replay(find("no-fence"), JaxMachines("donated")).shown
    assert "was held by the runtime while 'forward reads t[3]' of launch 1" in shown.said


def test_with_a_live_view_a_donation_is_a_copy_and_nothing_holds_it() -> None:
    (shown,) = replay(find("donation-refused"), JaxMachines("aliased")).shown
    assert shown.verdict == "ok"
    assert "ran while 'forward reads t[3]' of launch 1 (line 11) stood at its gate; intact" in shown.said


def test_blocks_of_the_allocator_cannot_be_expressed() -> None:
    assert replay(find("block-kept"), JaxMachines("aliased")).lacks


def test_a_donated_array_cannot_keep_the_value_that_a_later_read_names() -> None:
    named = find("named-read")
    assert replay(named, JaxMachines("donated")).lacks.startswith(
        "a read takes the array that its handle names at the call"
    )
    assert replay(named, JaxMachines("aliased")).verdict == "ok"
    assert replay(find("stale-static"), JaxMachines("donated")).verdict == "bad"


def test_both_kinds_of_tables_are_replayed_on_the_cpu() -> None:
    assert [one.name for one in machines("jax", "cpu")] == ["jax/cpu/aliased", "jax/cpu/donated"]


def test_there_is_no_replay_on_a_gpu() -> None:
    with pytest.raises(InputError, match="backend 'jax' replays scenarios on cpu, not on 'cuda'"):
        machines("jax", "cuda")
