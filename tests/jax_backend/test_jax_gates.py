"""Where a write lands while a forward is held, gate by gate; and what happens without a fence."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from warfence.core.backend import Forward
from warfence.core.errors import DeadHandleError, FenceError
from warfence.core.fence import Ticket
from warfence.core.program import REQ_TO_TOKEN

from .conftest import CONTEXT, MakeRig, Rig, slot

KEPT = 3  # the KV slot that the forward must read at position 0


def issue(rig: Rig, forward: Forward, policy: str):
    """One launch with its ticket recorded as the policy says; (outputs, ticket or None)."""
    rig.launches += 1
    launch, ticket = rig.launches, None
    rig.forward.wait_lane(rig.schedule)
    forward.load_batch(rig.batch(forward, [(1, 2, (7,), False)]), launch)
    if policy == "pre_replay":
        ticket = rig.forward.record(launch)
    forward.replay(launch)
    if policy == "in_graph":
        ticket = forward.marker.ticket(launch)
    elif policy == "post_replay":
        ticket = rig.forward.record(launch)
    return forward.tail(launch), ticket


def barrier(rig: Rig, policy: str, ticket: Ticket | None) -> None:
    if policy == "off":
        return
    if ticket is None:
        rig.schedule.wait_lane(rig.forward)
    else:
        rig.schedule.wait(ticket)


def landing(rig: Rig, forward: Forward, policy: str) -> str | None:
    """The first gate at which the next write lands although the forward is held there; None: at no gate."""
    for position in forward.gates.positions:
        forward.gates.close(position)
        outputs, ticket = issue(rig, forward, policy)
        barrier(rig, policy, ticket)
        forward.gates.await_reached(position)
        rig.write(value=KEPT)
        landed = rig.schedule.settle(60)
        forward.gates.open(position)
        outputs.result()
        rig.schedule.synchronize()
        if landed:
            return position
    return None


LANDINGS = [
    ("snapshot", "pre_replay", "swa_translate"),
    ("captured", "in_graph", "swa_translate"),
    ("live", "in_graph", "swa_translate.0"),
    ("live", "post_replay", "sample"),
    ("live", "none", None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("attention", "policy", "expected"), LANDINGS)
def test_the_write_lands_right_behind_the_boundary(rig: Rig, attention: str, policy: str, expected: str | None) -> None:
    forward = rig.compile(attention, gated=True, marker=policy == "in_graph")
    assert landing(rig, forward, policy) == expected
    assert forward.gates.watchdog_fired == []
    did = rig.backend.report()
    assert (did["writes_held"], did["writes_copied"], did["refused"]) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("attention", "policy", "expected"), LANDINGS[1:])
def test_an_aliased_write_lands_at_the_same_place(
    aliased_rig: Rig, attention: str, policy: str, expected: str | None
) -> None:
    forward = aliased_rig.compile(attention, gated=True, marker=policy == "in_graph")
    assert landing(aliased_rig, forward, policy) == expected


@pytest.mark.slow
def test_gates_hold_and_let_go_in_order(rig: Rig) -> None:
    forward = rig.compile("live", gated=True)
    for position in forward.gates.positions:
        forward.gates.close(position)
    outputs, _ = issue(rig, forward, "in_graph")
    for position, behind in zip(forward.gates.positions, (*forward.gates.positions[1:], None), strict=True):
        forward.gates.await_reached(position)
        if behind is not None:
            with pytest.raises(FenceError):
                forward.gates.await_reached(behind, timeout_s=0)
        forward.gates.open(position)
    assert outputs.result()["next_tokens"].shape == (1,)


@pytest.mark.slow
def test_two_forwards_of_the_same_text_have_gates_of_their_own(rig: Rig) -> None:
    """Executables are shared by text, and the text of a gate does not say whose it is."""
    one = rig.compile(gated=True)
    two = rig.backend.compile(one.program, marker_after="swa_translate", gated=True)
    one.gates.close("start")
    two.gates.close("sample")
    outputs, _ = issue(rig, two, "in_graph")
    two.gates.await_reached("sample")
    two.gates.open("sample")
    outputs.result()
    one.gates.open("start")
    plain = rig.compile()
    made = rig.backend.compilations
    again = rig.backend.compile(plain.program, marker_after="swa_translate")
    assert rig.backend.compilations == made
    assert [e.compiled for e in again.executables] == [e.compiled for e in plain.executables]


@pytest.mark.slow
def test_no_kv_is_written_before_the_gate_of_its_layer_opens(rig: Rig) -> None:
    """Read through the memory itself: the state belongs to the held executable, so no copy of it can be asked for."""
    forward = rig.compile("live", gated=True)
    rig.forward.synchronize()
    pool = rig.backend.state["kv.0"]
    memory = np.ctypeslib.as_array((ctypes.c_float * pool.size).from_address(pool.unsafe_buffer_pointer()))
    keys = memory.reshape(pool.shape)[0, slot(1, 2)]
    for position, written in (("swa_translate.0", False), ("layer.0", True)):
        memory[:] = 0
        forward.gates.close(position)
        outputs, _ = issue(rig, forward, "in_graph")
        forward.gates.await_reached(position)
        assert keys.any() == written, f"held at {position}"
        forward.gates.open(position)
        outputs.result()
        rig.forward.synchronize()
        assert keys.any()


@pytest.mark.slow
@pytest.mark.parametrize("fenced", [True, False])
def test_an_aliased_table_is_protected_by_the_fence_alone(aliased_rig: Rig, fenced: bool) -> None:
    """The forward is held before its read; a write that nothing fences changes what it reads."""
    rig = aliased_rig
    rig.fill()
    forward = rig.compile(gated=True)
    for position, token in enumerate((5, 6)):
        rig.launch(forward, [(1, position, (token,), False)]).result()
    margins = []
    for hold in (False, True):
        if hold:
            forward.gates.close("stage_inputs")
        outputs, ticket = issue(rig, forward, "in_graph")
        if fenced:
            barrier(rig, "in_graph", ticket)
        if hold:
            rig.write(CONTEXT, slot(2, 5))  # position 0 now points at a slot that holds nothing
            forward.gates.await_reached("stage_inputs")
            assert rig.schedule.settle(60) is not fenced
            forward.gates.open("stage_inputs")
        margins.append(float(outputs.result()["margin"][0]))
    assert (margins[0] == margins[1]) is fenced
    assert rig.tables.snapshot_to_host(REQ_TO_TOKEN)[1, 0] == slot(2, 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attention", "marker", "expected"), [("captured", True, "swa_translate"), ("live", False, "sample")]
)
def test_donation_alone_holds_a_write_as_long_as_an_executable_has_the_table(
    rig: Rig, attention: str, marker: bool, expected: str
) -> None:
    """No fence at all: the runtime's hold is one. It ends where the chain is cut."""
    held = rig.backend.report()["writes_held"]
    forward = rig.compile(attention, gated=True, marker=marker)
    assert landing(rig, forward, "off") == expected
    before = forward.gates.positions.index(expected)
    assert rig.backend.report()["writes_held"] == held + before
    assert (rig.backend.report()["refused"], rig.backend.report()["writes_copied"]) == (0, 0)


@pytest.mark.slow
def test_a_handle_that_a_write_has_taken_is_refused(make_rig: MakeRig) -> None:
    rig = make_rig()
    forward = rig.compile()
    forward.load_batch(rig.batch(forward, [(1, 2, (7,), False)]), 1)
    rig.write()
    rig.schedule.synchronize()
    forward.replay(1)
    message = (
        r"launch 1, stage 'page_table\.\.swa_translate': table 'req_to_token' was captured as version 1, whose memory "
        r"write 2 has taken over: that write was issued between the launch's load_batch and this read"
    )
    with pytest.raises(DeadHandleError, match=message):
        forward.tail(1).result()
    with pytest.raises(DeadHandleError):
        rig.forward.synchronize()
    assert rig.backend.report()["refused"] == 1
    rig.backend.close()
