"""The word: counted behind the last read of one executable, waited for by value, and refused where nobody would see it."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import pytest

from warfence.core.errors import FenceError, InputError
from warfence.core.fence import Ticket
from warfence_jax import marking
from warfence_jax.backend import JaxBackend
from warfence_jax.checked import last_reader
from warfence_jax.fence_word import DonatedWord, HostMemory
from warfence_jax.options import choose

from .conftest import DECODES, MakeRig, Rig, check

NONE_THERE = "this machine has no GPU"


def test_one_executable_holds_the_reads_the_word_and_the_rest(aliased_rig: Rig) -> None:
    forward = aliased_rig.compile()
    (marked,) = [e for e in forward.executables if e.segment.marked]
    names = [s.name for s in marked.segment.stages]
    assert forward.marker.stage in names[:-1]
    assert not any(e.segment.ends_at_marker for e in forward.executables)
    before = forward.marker.word.count()
    tickets = []
    for _ in range(3):
        outputs = aliased_rig.launch(forward)
        tickets.append(forward.marker.ticket(aliased_rig.launches))
        outputs.result()
    assert forward.marker.word.count() == before + 3
    assert all(t.source.done() for t in tickets)


@pytest.mark.parametrize("attention", ["captured", "live"])
def test_served_with_words_as_the_reference_says(make_rig: MakeRig, attention: str) -> None:
    check(make_rig((True, False), tables="aliased"), attention)


def test_the_word_wraps_round(make_rig: MakeRig) -> None:
    rig = make_rig(tables="aliased")
    rig.backend.first_count = 2**32 - 3
    check(rig, "captured")
    assert rig.compile("captured", rows=2).marker.word.count() == (2**32 - 3 + DECODES) % 2**32


def test_a_write_may_wait_for_a_launch_that_is_not_issued(aliased_rig: Rig) -> None:
    forward = aliased_rig.compile()
    early = forward.marker.ticket(aliased_rig.launches + 1)
    aliased_rig.schedule.wait(early)
    aliased_rig.write(value=3)
    assert not aliased_rig.schedule.settle(0.02)
    # The forward does not wait for the schedule lane here, which waits for the forward.
    aliased_rig.launches += 1
    forward.load_batch(aliased_rig.batch(forward, ((1, 0, (7,), False),)), aliased_rig.launches)
    forward.replay(aliased_rig.launches)
    forward.tail(aliased_rig.launches).result()
    aliased_rig.schedule.synchronize()
    aliased_rig.fill()


def test_a_launch_that_never_comes_ends_with_a_sentence(make_rig: MakeRig) -> None:
    rig = make_rig(tables="aliased")
    forward = rig.compile()
    forward.marker.word = HostMemory(forward.word.address, "decode/captured/1x1", watchdog_s=0.01)
    rig.schedule.wait(forward.marker.ticket(7))
    rig.write()
    with pytest.raises(FenceError, match=r"launch number 1 of 'decode/captured/1x1' stood for 0\.01 s"):
        rig.schedule.synchronize()


def test_a_barrier_alone_orders_nothing_and_is_refused(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: the word does not depend on what was read, there is only a barrier between them."""

    def barrier_only(word: jax.Array, zero: jax.Array, read: list[jax.Array], touched: list[jax.Array]):
        word, *values = jax.lax.optimization_barrier([word + jnp.uint32(1), *read])
        return word, values

    monkeypatch.setattr(marking, "by_loop", barrier_only)
    rig = make_rig(tables="aliased")
    rig.compile()
    with pytest.raises(InputError, match=r"uses table '\w+' behind the marker.*Line \d+ is `%"):
        rig.forward.synchronize()


def test_a_word_that_moved_is_refused_at_the_launch() -> None:
    word = DonatedWord("decode", jax.devices()[0])
    word.take()
    with pytest.raises(FenceError, match="word of 'decode' moved from 0x"):
        word.give(jnp.zeros((1,), jnp.uint32))


def test_a_word_whose_array_was_deleted_is_refused() -> None:
    word = DonatedWord("decode", jax.devices()[0])
    array = word.take()
    word.give(array)
    word.free()
    array.delete()
    with pytest.raises(FenceError, match="word of 'decode' was deleted"):
        word.take()


def test_two_threads_may_not_launch_one_forward() -> None:
    word, refused = DonatedWord("decode", jax.devices()[0]), list[str]()
    word.take()

    def second() -> None:
        try:
            word.take()
        except FenceError as error:
            refused.append(str(error))

    thread = threading.Thread(target=second)
    thread.start()
    thread.join()
    assert refused == ["'decode' is launched from two threads at a time: launch it from its forward lane alone"]


def test_the_compiled_modules_say_which_stage_reads_last(aliased_rig: Rig, rig: Rig) -> None:
    for one in (aliased_rig, rig):  # in one executable, and cut
        for attention in ("captured", "snapshot"):
            forward = one.compile(attention)
            assert last_reader(forward.program, forward.executables) == forward.program.read_boundary().name


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("donated", "word", None), "marker 'word' with tables 'donated': the runtime holds a donated table until"),
        (("copied", "node", None), "leaves the old one to its readers"),
        (("aliased", "cut", "value"), "marker 'cut' gives tickets by event, not by value"),
        (("aliased", None, "event"), "marker 'word' gives tickets by value, not by event"),
        (("device", None, None), f"tables 'device' cannot be had: {NONE_THERE}"),
        (("aliased", "hold", None), "unknown marker 'hold'; choose one of: cut, word, node"),
        (("aliased", None, "often"), "unknown kind of ticket 'often'; choose one of: event, value"),
        (("pinned", None, None), "unknown kind of tables 'pinned'"),
    ],
)
def test_what_does_not_go_together_is_refused_with_its_reason(given: tuple[str | None, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        choose(*given, NONE_THERE)


def test_without_jit_nothing_can_be_promised() -> None:
    with (
        jax.disable_jit(),
        pytest.raises(InputError, match="JAX_DISABLE_JIT is set, so nothing is compiled, cut or donated"),
    ):
        JaxBackend()


def test_a_ticket_of_another_word_is_still_of_its_launch(aliased_rig: Rig) -> None:
    forward = aliased_rig.compile()
    aliased_rig.launch(forward).result()
    ticket = forward.marker.ticket(aliased_rig.launches)
    with pytest.raises(FenceError, match="is stale"):
        aliased_rig.schedule.wait(Ticket(ticket.launch + 1, ticket.source))
