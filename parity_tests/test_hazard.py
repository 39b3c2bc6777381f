"""The negative arms: without the fence, or with a ticket that comes too early, the text is wrong, every time.

The order is forced (see `warfence.serve.forced_order`), so this is no matter of luck. Where the runtime guards the tables itself
(donation), the same order leaves the text right, and the suite says what the runtime did.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from parity_tests.plugin import unguarded_options
from warfence.core.attention import make_attention
from warfence.core.backend import Backend, Forward
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.modes import FenceMode, ForwardMode, Region, WarReadDonePolicy
from warfence.core.policy import Decision
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN, START, ForwardProgram
from warfence.parity.small import SIZES, SmallModel, first_difference, make_engine, serve
from warfence.serve.engine import Engine
from warfence.serve.fixture import Fixture
from warfence.serve.model.program import build, sliding_layers

MakeBackend = Callable[..., Backend]
Engines = Callable[..., Engine]
Target = tuple[str, str]
pytestmark = pytest.mark.slow


@pytest.fixture
def unguarded(target: Target) -> dict[str, str]:
    """Options of the backend under test that leave its tables to the fence alone."""
    return unguarded_options(target)


@pytest.mark.parametrize("attention", ["snapshot", "captured", "live"])
def test_no_fence_corrupts_every_time(
    target: Target, engines: Engines, unguarded: dict[str, str], small: SmallModel, attention: str
) -> None:
    engine = engines(target, unguarded, attention=attention, forced_order="first")
    assert not engine.backend.capabilities.guards_writes
    for _ in range(2):
        requests, summary = serve(engine, fence=FenceMode.OFF)
        assert first_difference(requests, small.expected[False]) is not None
        assert summary.forced_order == {"landed_before_read": summary.steps, "waited": 0}
    assert first_difference(serve(engine, fence=FenceMode.FINE)[0], small.expected[False]) is None, "the fence mends it"


def test_no_fence_on_guarded_tables_is_met_by_the_runtime(target: Target, engines: Engines, small: SmallModel) -> None:
    """Donation: the runtime holds the write back, or refuses the read of a handle that was given away. Never silent."""
    engine = engines(target, attention="captured", forced_order="first")
    if not engine.backend.capabilities.guards_writes:
        pytest.skip("this backend's runtime guards nothing: the corruption is tested above")
    requests, summary = serve(engine, fence=FenceMode.OFF)
    assert first_difference(requests, small.expected[False]) is None
    assert summary.forced_order["waited"] > 0, "the runtime was to hold the writes"


@pytest.mark.parametrize("attention", ["captured", "live", "composite"])
def test_a_ticket_one_stage_too_early_corrupts(
    target: Target, make_backend: MakeBackend, unguarded: dict[str, str], small: SmallModel, attention: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The barrier waits, and waits for the wrong point: the write lands before the last read."""
    backend = make_backend(**unguarded)
    compile_right = backend.compile

    def compile_early(program: ForwardProgram, *, marker_after: str | None = None, gated: bool = False) -> Forward:
        if marker_after is not None:
            marker_after = early(program, marker_after)
        return compile_right(program, marker_after=marker_after, gated=gated)

    monkeypatch.setattr(backend, "compile", compile_early)
    if attention == "composite":  # its only replay read is the first replay stage: one stage earlier is PRE_REPLAY
        monkeypatch.setattr(
            "warfence.core.forwards.decide", lambda query, rules=(): Decision(pre_for_decode(query.mode), "mutant", "")
        )
    with make_engine(small, backend, attention=attention, forced_order="last", trusting=True) as engine:
        requests, summary = serve(engine)
    assert summary.barriers["fine"] > 0
    assert summary.forced_order["landed_before_read"] > 0
    assert first_difference(requests, small.expected[False]) is not None


def test_premise_the_captured_forward_reads_the_live_table(make_backend: MakeBackend, small: SmallModel) -> None:
    """Change the table after the batch was loaded, replay, and the output follows the table."""
    attention = make_attention("captured", sliding_layers(small.config))
    program = build(small.config, attention, ForwardMode.EXTEND, BatchLayout(1, 8), sampled=False)
    row = BatchRow(1, 0, (5, 9, 2, 7, 1, 8, 3, 4), tuple(range(1, 9)), False, 0.0, 1.0, ())
    rows = SIZES["rows"] + 1
    with Fixture.of_model(make_backend(), small.config, small.weights, context=96, rows=rows, slots=40) as fixture:

        def tokens(first_slot: int) -> tuple[int, float]:
            slots = range(first_slot, first_slot + 8)
            fixture.write(REQ_TO_TOKEN, range(96, 96 + 8), slots)
            fixture.write(FULL_TO_SWA, slots, slots)
            fixture.lane.wait_lane(fixture.schedule)
            result = fixture.launch(fixture.forward(program), pack(program.layout, [row])).result()
            return int(result["next_tokens"][0]), float(result["margin"][0])

        right = tokens(1)
        assert tokens(20) != right, "the page table now points at slots that nobody wrote"
        assert tokens(1) == right


def early(program: ForwardProgram, stage: str) -> str:
    """One replay stage before; where there is none, the stage itself (the caller takes PRE_REPLAY instead)."""
    before = program.before(stage)
    return before if before != START and program.stages[program.index(before)].region is Region.REPLAY else stage


def pre_for_decode(mode: ForwardMode) -> WarReadDonePolicy:
    return WarReadDonePolicy.PRE_REPLAY if mode is ForwardMode.DECODE else WarReadDonePolicy.NONE
