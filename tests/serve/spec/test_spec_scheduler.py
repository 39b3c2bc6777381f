"""A step of several launches: who owns the mailbox, when the barrier stands, and what is learned of an accepted run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.serve.spec.noting import Source, World
from warfence.core.fence import Ticket
from warfence.core.modes import ForwardMode
from warfence.serve.planner import IDLE
from warfence.serve.requests import Request
from warfence.serve.spec import DFLASH, EAGLE, NGRAM, NO_SPEC, SpecAlgorithm

EXTEND, VERIFY, DECODE, DRAFT_EXTEND = (
    ForwardMode.EXTEND, ForwardMode.TARGET_VERIFY, ForwardMode.DECODE, ForwardMode.DRAFT_EXTEND,
)  # fmt: skip


def until_results(world: World) -> list[str]:
    world.scheduler.overlapped(world.work)
    return [note for note in world.notes if not note.startswith(("result", "release"))]


@pytest.mark.parametrize(
    ("spec", "mode", "owner", "launches"),
    [
        (EAGLE, EXTEND, "draft", [EXTEND, DRAFT_EXTEND]), (EAGLE, VERIFY, "draft", [VERIFY, DRAFT_EXTEND]),
        (EAGLE, DECODE, "target", [DECODE]), (EAGLE, ForwardMode.IDLE, "target", [ForwardMode.IDLE]),
        *((spec, mode, "target", [mode]) for spec in (DFLASH, NGRAM, NO_SPEC) for mode in (EXTEND, VERIFY, DECODE)),
    ],
)  # fmt: skip
def test_the_last_launch_of_a_step_has_the_mailbox(
    spec: SpecAlgorithm, mode: ForwardMode, owner: str, launches: list[ForwardMode]
) -> None:
    phases = spec.phases(mode)
    assert [m for _, m in phases] == launches
    assert phases[0][0] == "target"
    assert phases[-1][0] == owner


def test_verify_and_draft_extend_go_out_one_after_the_other_and_the_barrier_stands_behind_both() -> None:
    world = World([EXTEND, VERIFY])
    assert until_results(world) == [
        "target extend 1", "draft draft_extend 2", "wait for ticket 2",
        "target target_verify 3", "draft draft_extend 4", "wait for ticket 4",
    ]  # fmt: skip
    assert [n for n in world.notes if n.startswith("result")] == ["result 1", "result 2", "result 3", "result 4"]
    assert world.notes.index("result 1") > world.notes.index("wait for ticket 4"), "learned a step late"
    assert world.batches[0] is world.batches[1], "the phases of a step share one batch"
    assert world.batches[2] is world.batches[3] is not world.batches[0]
    assert world.scheduler.timing.device == {"extend": 0.5, "target_verify": 0.5, "draft_extend": 1.0}
    assert dict(world.scheduler.timing.steps) == {"extend": 1, "target_verify": 1}


def test_the_owner_moves_back_to_the_target_in_a_fallback_round() -> None:
    seen = until_results(World([VERIFY, DECODE, VERIFY]))
    assert seen == [
        "target target_verify 1", "draft draft_extend 2", "wait for ticket 2", "target decode 3", "wait for ticket 3",
        "target target_verify 4", "draft draft_extend 5", "wait for ticket 5",
    ]  # fmt: skip


def test_an_owner_that_published_nothing_means_coarse_whatever_the_other_left() -> None:
    """The target publishes in the verify, though it is not the last reader: that ticket is dropped, never waited for."""
    world = World([VERIFY, VERIFY], publish=frozenset({VERIFY}))
    seen = until_results(world)
    assert [n for n in seen if n.startswith("wait")] == ["wait for the forward lane"] * 2
    assert (world.scheduler.barrier.counts.coarse, world.scheduler.barrier.counts.fine) == (2, 0)


@pytest.mark.parametrize(("mode", "other"), [(DECODE, "draft"), (VERIFY, "target"), (EXTEND, "target")])
@pytest.mark.parametrize("publishes", [True, False])
def test_a_stale_ticket_in_the_mailbox_of_the_other_runner_is_dropped_and_never_used(
    mode: ForwardMode, other: str, publishes: bool
) -> None:
    world = World([mode], publish=frozenset({DECODE, DRAFT_EXTEND}) if publishes else frozenset())
    stale = Ticket(99, Source(98))  # waiting on it would raise, and so would a second publisher on top of it
    world.runners[other].mailbox._ticket = stale  # type: ignore[arg-type]
    last = 1 if mode is DECODE else 2
    assert until_results(world)[-1] == (f"wait for ticket {last}" if publishes else "wait for the forward lane")
    assert all(runner.mailbox.take() is None for runner in world.runners.values())


def test_serial_waits_for_nobody_and_leaves_both_mailboxes_empty() -> None:
    world = World([VERIFY, DECODE])
    world.scheduler.serial(world.work)
    assert world.notes == [
        "target target_verify 1", "draft draft_extend 2", "result 1", "result 2", "target decode 3", "result 3",
    ]  # fmt: skip
    assert all(runner.mailbox.take() is None for runner in world.runners.values())


def test_while_results_are_awaited_a_batch_of_padding_goes_out_once_and_is_fenced_by_the_target() -> None:
    world = World([VERIFY, None, None, VERIFY], idle=True)
    assert until_results(world)[:7] == [
        "target target_verify 1", "draft draft_extend 2", "wait for ticket 2", "target idle 3",
        "wait for the forward lane", "target target_verify 4", "draft draft_extend 5",
    ]  # fmt: skip
    assert IDLE.mode is ForwardMode.IDLE
    batch = world.batches[2]
    assert batch.view("req_pool_indices").tolist() == [0], "all padding"
    assert world.scheduler.timing.steps["idle"] == 2, "and once more behind the last verify"
    without = World([VERIFY, None, VERIFY])
    assert not any("idle" in note for note in until_results(without))


@pytest.mark.parametrize("accept", range(1, 5))
def test_an_accepted_run_is_learned_whole(accept: int) -> None:
    world = World([VERIFY], accept=accept)
    world.request.row, world.request.cached, world.request.slack = 1, 4, 3
    world.scheduler.overlapped(world.work)
    assert world.heard == world.request.output == [5, 6, 7, 8][:accept]
    assert world.request.margins == [0.0, 1.0, 2.0, 3.0][:accept]
    assert (world.request.cached, world.request.slack, world.request.flying) == (3 + accept, 0, 0)
    assert world.learned_after == [accept], "slots come back once the length is known"
    assert (world.work.spec_counts.rows, world.work.spec_counts.tokens) == (1, accept)


CUTS = {
    "an end-of-text token": ({"eos": frozenset({6})}, [5, 6]),
    "the first of two": ({"eos": frozenset({6, 7})}, [5, 6]),
    "max_new_tokens": ({"request": Request(0, (1,), 3)}, [5, 6, 7]),
    "the context": ({"limits": SimpleNamespace(context=2)}, [5]),
    "whichever comes first": ({"eos": frozenset({7}), "request": Request(0, (1,), 2)}, [5, 6]),
    "its very last token": ({"eos": frozenset({8})}, [5, 6, 7, 8]),
    "a later end counts if the request does not stop there": (
        {"eos": frozenset({6}), "request": Request(0, (1,), 4, stop_at_eos=False)}, [5, 6, 7, 8],
    ),
}  # fmt: skip


@pytest.mark.parametrize("cut", CUTS)
def test_an_accepted_run_is_cut_by(cut: str) -> None:
    how, expected = CUTS[cut]
    how = {name: Request(0, r.prompt, r.max_new_tokens, stop_at_eos=r.stop_at_eos) if isinstance(r, Request) else r
           for name, r in how.items()}  # fmt: skip
    world = World([VERIFY, VERIFY, VERIFY], accept=4, **how)
    world.scheduler.overlapped(world.work)
    assert world.heard == world.request.output == expected
    assert world.request.stopped
    assert world.work.spec_counts.tokens == len(expected), "what was cut off did not count"
    assert world.notes.count("release") == 1, "what is in flight behind its end is surplus"
    assert world.learned_after == []
