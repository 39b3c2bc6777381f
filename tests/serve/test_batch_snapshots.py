"""A declaration for one batch: an attention backend that says, batch by batch, whether it snapshotted what the launch reads.

The page table is made inside the captured forward, but a batch of few enough tokens had it copied before, and then the forward
takes the copy. The write that follows each launch comes as soon as the barrier permits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from warfence.core.attention import AttentionKind, make_attention
from warfence.core.batch import Batch, BatchLayout, BatchRow, pack
from warfence.core.forwards import FencePlan, PlannedForward
from warfence.core.modes import ForwardMode, SharedReadEnds, WarReadDonePolicy
from warfence.core.program import REQ_TO_TOKEN
from warfence.parity.kernels import KERNELS
from warfence.parity.small import small_model
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.fixture import Fixture
from warfence.serve.model.program import build
from warfence.serve.spec import NO_SPEC

SMALL = small_model()
FULL_ONLY = replace(SMALL.config, sliding=(False,) * SMALL.config.layers, window=None)
EXTEND, ROWS, SLOTS, CONTEXT, CHUNK = ForwardMode.EXTEND, 3, 64, 24, 4


@dataclass
class Snapshotting:
    """An attention backend with a copy of the page tables of the batch at hand, or none."""

    lies: bool = False
    fails: list[bool] = field(default_factory=list)  # of each call, whether it raises
    kept: Any = None
    table: Any = None
    asked: int = 0

    def snapshots(self, mode: ForwardMode, batch: Batch) -> bool:
        self.kept, self.asked = None, self.asked + 1  # before each attempt
        if self.fails and self.fails.pop(0):
            raise RuntimeError("no room for a copy")
        fits = int(batch.view("extend_lens").sum()) <= 2
        if fits and not self.lies:
            self.kept = self.table.snapshot_to_host(REQ_TO_TOKEN)[batch.view("req_pool_indices")]
        return fits

    def page_table(self, env: Any, attrs: Any) -> dict[str, np.ndarray]:
        live = KERNELS["page_table"](env, attrs)
        return live if self.kept is None else {"page_table": self.kept}


def batch_of(new: int) -> Batch:
    tokens, slots = tuple(range(5, 5 + new)), tuple(range(1, 1 + new))
    return pack(BatchLayout(1, CHUNK), [BatchRow(1, 0, tokens, slots, False, 0.0, 1.0, ())])


class Served:
    """One forward of that backend with a fence, on the strict backend, whose adversary lets every permitted write go first."""

    def __init__(self, attention: Snapshotting, prefill: bool = True) -> None:
        self.attention = attention
        kind = make_attention("captured", ())
        self.kind = replace(kind, full=replace(kind.full, declared={}), snapshots=attention.snapshots)
        strict = StrictBackend(kernels={**KERNELS, "page_table": attention.page_table})
        self.fixture = Fixture.of_model(strict, FULL_ONLY, SMALL.weights, context=CONTEXT, rows=ROWS, slots=SLOTS)
        attention.table = self.fixture.tables
        self.fixture.fill_rows()
        program = build(FULL_ONLY, self.kind, EXTEND, BatchLayout(1, CHUNK), sampled=False)
        fence = FencePlan(self.kind, NO_SPEC, prefill_enabled=prefill)
        self.planned: PlannedForward = fence.planned(self.fixture.forward(program, gated=True))

    def serve(self, new: int) -> tuple[WarReadDonePolicy, np.ndarray]:
        """One launch of so many tokens, held before its replay while the row is overwritten as soon as that may be."""
        self.fixture.fill_rows()
        batch = batch_of(new)
        before = dict(self.fixture.runner.policies)
        with self.fixture.held(self.planned, batch, "stage_inputs") as outputs:
            self.fixture.barrier(outputs.launch)
            cells = CONTEXT + np.arange(CONTEXT)
            self.fixture.write(REQ_TO_TOKEN, cells, np.full(CONTEXT, SLOTS - 1))
            self.fixture.schedule.settle(0.0)
        result = outputs.result()["margin"].copy()
        self.fixture.settle()
        (policy,) = (p for p, n in self.fixture.runner.policies.items() if n != before.get(p, 0))
        return WarReadDonePolicy(policy), result


@pytest.fixture
def truth() -> dict[int, np.ndarray]:
    """What each length gives behind a barrier that waits for the whole forward."""
    served = Served(Snapshotting(), prefill=False)
    return {new: served.serve(new)[1] for new in (2, 4)}


def test_a_batch_that_was_snapshotted_is_fine_and_the_others_are_coarse(truth: dict[int, np.ndarray]) -> None:
    served = Served(Snapshotting())
    for new, policy in (
        (2, WarReadDonePolicy.PRE_REPLAY),
        (4, WarReadDonePolicy.NONE),
        (2, WarReadDonePolicy.PRE_REPLAY),
    ):
        published, result = served.serve(new)
        assert published is policy
        assert np.array_equal(result, truth[new])
    assert served.attention.asked == 3, "once a launch"


def test_one_that_says_so_without_a_copy_reads_what_was_written_since(truth: dict[int, np.ndarray]) -> None:
    published, result = Served(Snapshotting(lies=True)).serve(2)
    assert published is WarReadDonePolicy.PRE_REPLAY
    assert not np.array_equal(result, truth[2])


def test_a_snapshot_that_fails_leaves_no_ticket_and_no_answer_for_the_next(truth: dict[int, np.ndarray]) -> None:
    """The launch before it was snapshotted, so anything that were kept of that would say yes (sglang #35947)."""
    served = Served(Snapshotting(fails=[False, True]))
    assert served.serve(2)[0] is WarReadDonePolicy.PRE_REPLAY
    served.fixture.fill_rows()
    with pytest.raises(RuntimeError, match="no room for a copy"):
        served.fixture.execute(served.planned, batch_of(2))
    assert served.fixture.runner.mailbox.take() is None
    outputs = served.fixture.execute(served.planned, batch_of(4))
    assert served.fixture.runner.mailbox.take() is None, "the next barrier is coarse"
    assert served.attention.kept is None
    assert np.array_equal(outputs.result()["margin"], truth[4])


@pytest.mark.parametrize("how", [{"prefill": False}, {"declared": SharedReadEnds.PRE_REPLAY}], ids=str)
def test_it_is_not_asked_where_its_answer_counts_for_nothing(how: dict[str, Any]) -> None:
    attention = Snapshotting()
    served = Served(attention, prefill=how.get("prefill", True))
    if "declared" in how:
        child = replace(served.kind.full, declared={EXTEND: how["declared"]})
        fence = FencePlan(replace(served.kind, full=child), NO_SPEC, prefill_enabled=True)
        served.planned = fence.planned(served.planned.forward)
    served.planned.policy_of(pack(BatchLayout(1, CHUNK), []))
    assert (attention.asked, served.planned.snapshots) == (0, None)


def test_the_kind_of_a_mode_brings_its_own() -> None:
    attention = Snapshotting()
    prefill = AttentionKind("lazy", make_attention("captured", ()).full, make_attention("captured", ()).full,
                            snapshots=attention.snapshots)  # fmt: skip
    hybrid = replace(make_attention("captured", ()), by_mode={EXTEND: prefill})
    assert hybrid.for_mode(EXTEND).snapshots == attention.snapshots
    assert hybrid.for_mode(ForwardMode.DECODE).snapshots is None
