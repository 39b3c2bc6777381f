"""What speculation makes of a model's programs: which stage reads what, where the reads end, and that no ticket is earlier."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tests.parity.suite.paged import BLOCK, LAYERS, random_draft
from warfence.core.attention import AttentionBackend, MetadataPlace, attention_names, make_attention
from warfence.core.batch import BatchLayout
from warfence.core.forwards import FencePlan
from warfence.core.modes import ForwardMode, Region, SharedReadEnds, WarReadDonePolicy
from warfence.core.policy import decide
from warfence.core.program import ForwardProgram
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.program import build, state_specs
from warfence.serve.spec import Drafting, get

DECODE, EXTEND, VERIFY, DRAFT_EXTEND, IDLE = (
    ForwardMode.DECODE, ForwardMode.EXTEND, ForwardMode.TARGET_VERIFY, ForwardMode.DRAFT_EXTEND, ForwardMode.IDLE,
)  # fmt: skip
SPECS = ("ngram", "ngram-snapshot", "dflash", "eagle")
LAYOUTS = {
    DECODE: BatchLayout(2, 1, BLOCK), VERIFY: BatchLayout(2, BLOCK, 2 * BLOCK), EXTEND: BatchLayout(2, 6),
    DRAFT_EXTEND: BatchLayout(2, 6), IDLE: BatchLayout(1, 1),
}  # fmt: skip
SLIDING = {"both kinds": (True, False, True), "full only": (False, False, False)}


def config(sliding: str = "both kinds") -> ModelConfig:
    flags = SLIDING[sliding]
    return ModelConfig("m", 19, 8, 3, 2, 1, 4, 8, flags, 4 if any(flags) else None, 16, 1e4, 1e-5, (0,), None)


def attention_of(kind: str, model: ModelConfig) -> AttentionBackend:
    return make_attention(kind, tuple(i for i, s in enumerate(model.sliding) if s))


def drafting_of(spec: str, model: ModelConfig) -> Drafting:
    made = get(spec).drafting(model, random_draft(model, spec) if spec in LAYERS else None, BLOCK)
    assert made is not None
    return made


def program(spec: str, mode: ForwardMode, kind: str, sliding: str = "both kinds") -> ForwardProgram:
    model = config(sliding)
    drafting, attention = drafting_of(spec, model), attention_of(kind, model)
    if mode is DRAFT_EXTEND:
        return drafting.draft_extend(attention.for_draft(), LAYOUTS[mode])
    return build(model, attention, mode, LAYOUTS[mode], sampled=True, drafting=drafting)


def cases() -> list[tuple[str, ForwardMode]]:
    """Every launch that a speculating engine has."""
    return [*itertools.product(SPECS, (DECODE, EXTEND, VERIFY, IDLE)), ("eagle", DRAFT_EXTEND)]


CASES = pytest.mark.parametrize(("spec", "mode"), cases(), ids=lambda part: getattr(part, "value", part))


@pytest.mark.parametrize("kind", attention_names())
@pytest.mark.parametrize("sliding", SLIDING)
@pytest.mark.parametrize("spec", SPECS)
def test_no_shared_read_of_a_late_program_depends_on_a_length(spec: str, sliding: str, kind: str) -> None:
    """Where a row stands only the device knows, and may learn it as late as it likes: rows are read whole."""
    for mode in (DECODE, VERIFY):
        made = program(spec, mode, kind, sliding)
        assert {s.takes for s in made.readers()} == {("req_pool_indices",)}
        assert {s.op for s in made.readers()} <= {"page_table", "swa_page_table"}
        assert made.stages[0].op == "resolve"
        layers = [s for s in made.stages if s.op == "layer"]
        assert all(made.index("token_locs") < made.index(s.name) for s in layers)
        assert "out_cache_loc" in made.stages[made.index("token_locs")].gives, "not the host's locations"


def test_a_plain_program_does_depend_on_lengths_and_reads_only_what_it_needs() -> None:
    made = program("ngram", EXTEND, "captured")
    assert made.stages[made.index("swa_translate")].takes == ("req_pool_indices", "prefix_lens", "out_cache_loc")
    assert made.stages[0].op == "stage_inputs"


@CASES
@pytest.mark.parametrize("kind", attention_names())
def test_a_program_breaks_only_where_attention_is_segmented_behind_every_layer_but_the_last(
    spec: str, mode: ForwardMode, kind: str
) -> None:
    expected = (
        ()
        if kind not in ("segmented", "rereading")
        else ("draft_layer",)
        if mode is DRAFT_EXTEND
        else ("layer.0", "layer.1")
    )
    made = program(spec, mode, kind)
    assert made.breaks == expected
    assert made.steps(Region.REPLAY, None, True) == replace(made, breaks=()).steps(Region.REPLAY, None, True)


@CASES
@pytest.mark.parametrize("sliding", SLIDING)
@pytest.mark.parametrize("kind", attention_names())
def test_the_last_read_is_where_the_attention_backend_declares_it(
    spec: str, mode: ForwardMode, kind: str, sliding: str
) -> None:
    """But for n-grams, which read once more in the tail of what comes before a verify."""
    made, model = program(spec, mode, kind, sliding), config(sliding)
    attention = attention_of(kind, model).for_draft() if mode is DRAFT_EXTEND else attention_of(kind, model)
    boundary = made.read_boundary()
    assert boundary is not None
    if spec == "ngram" and mode in (VERIFY, EXTEND):
        assert (boundary.name, boundary.region) == ("ngram_page_table", Region.TAIL)
        return
    ends = attention.shared_read_ends(mode)
    if ends is SharedReadEnds.IN_GRAPH:
        assert attention.last_reader(mode) == boundary.name
        assert boundary.region is Region.REPLAY
    elif ends is SharedReadEnds.PRE_REPLAY:
        assert boundary.region is Region.LOAD_BATCH
    else:
        assert ends is SharedReadEnds.UNKNOWN or boundary.region is Region.REPLAY
        assert attention.last_reader(mode) is None


@CASES
@pytest.mark.parametrize("kind", attention_names())
def test_no_ticket_of_a_steps_owner_is_recorded_before_its_last_read(spec: str, mode: ForwardMode, kind: str) -> None:
    """For every marker and both positions of the switch, by what the program itself reads."""
    made, algorithm = program(spec, mode, kind), get(spec)
    if len(algorithm.phases(mode)) > 1:
        return  # the ticket of the step's last launch is used, and no other
    boundary = made.read_boundary()
    assert boundary is not None
    for marker, prefill in itertools.product((False, True), repeat=2):
        fence = FencePlan(attention_of(kind, config()), algorithm, prefill)
        planted = fence.marker_stage(mode) if marker else None
        policy = decide(fence.query(mode, planted is not None)).policy
        if policy is WarReadDonePolicy.PRE_REPLAY:
            assert boundary.region is Region.LOAD_BATCH
        elif policy is WarReadDonePolicy.IN_GRAPH:
            assert planted is not None
            assert made.index(planted) >= made.index(boundary.name)
            made.check_marker(planted)
        elif policy is WarReadDonePolicy.POST_REPLAY:
            assert boundary.region <= Region.REPLAY


@pytest.mark.parametrize("kind", attention_names())
def test_ngram_looks_up_again_only_where_a_verify_may_follow_that_uses_it(kind: str) -> None:
    reading = {mode: [s.name for s in program("ngram", mode, kind).readers() if s.region is Region.TAIL] for mode in LAYOUTS
               if mode is not DRAFT_EXTEND}  # fmt: skip
    assert reading == {DECODE: [], VERIFY: ["ngram_page_table"], EXTEND: ["ngram_page_table"], IDLE: []}
    tail = [s.name for s in program("ngram", VERIFY, kind).region(Region.TAIL)]
    assert tail == ["commit", "ngram_page_table", "ngram_lookup", "keep_drafts"]
    from_snapshot = [s.name for s in program("ngram-snapshot", VERIFY, kind).region(Region.TAIL)]
    assert from_snapshot == ["commit", "ngram_lookup", "keep_drafts"]


@pytest.mark.parametrize("kind", attention_names())
def test_the_drafts_own_launch_reads_the_page_table_once_more_and_nothing_else(kind: str) -> None:
    made = program("eagle", DRAFT_EXTEND, kind)
    assert [s.name for s in made.stages] == [
        "eagle_inputs", "page_table", "token_locs", "draft_layer", "eagle_propose", "keep_drafts",
    ]  # fmt: skip
    captured = attention_of(kind, config()).full.place is not MetadataPlace.LOAD_BATCH
    assert made.stages[1].region is (Region.REPLAY if captured else Region.LOAD_BATCH)
    assert [s.reads for s in made.readers()] == [("req_to_token",)]
    assert made.outputs == ("proposals",)
    assert made.stages[3].attrs["window"] is None
    assert made.stages[4].attrs["count"] == BLOCK - 1


def test_eagle_leaves_hidden_states_only_where_its_draft_comes_next() -> None:
    keeps = {mode: "eagle_keep" in [s.name for s in program("eagle", mode, "captured").stages] for mode in LAYOUTS}
    assert keeps == {DECODE: False, VERIFY: True, EXTEND: True, DRAFT_EXTEND: False, IDLE: False}
    lens = {m: program("eagle", m, "captured").stages for m in (VERIFY, EXTEND)}
    attrs = {m: next(s.attrs for s in stages if s.name == "eagle_keep") for m, stages in lens.items()}
    assert attrs == {
        VERIFY: {"lens": "accept_lens", "verified": True}, EXTEND: {"lens": "extend_lens", "verified": False}
    }  # fmt: skip


@pytest.mark.parametrize("spec", SPECS)
def test_a_verify_gives_what_was_chosen_and_how_much_of_it_counts(spec: str) -> None:
    made = program(spec, VERIFY, "captured")
    assert made.outputs == ("next_tokens", "margin", "accept_lens")
    assert made.stages[made.index("commit")].attrs == {"token": "last_token", "lens": "accept_lens"}
    plain = program(spec, DECODE, "captured")
    assert plain.outputs == ("next_tokens", "margin")
    assert plain.stages[plain.index("commit")].attrs == {"token": "next_tokens", "lens": "extend_lens"}
    assert "relay" not in [s.name for s in (*made.stages, *plain.stages)], "commit does it"
    resolves = made.stages[0]
    assert ("draft_tokens" in resolves.state) is resolves.attrs["proposals"] is (spec != "dflash")


@pytest.mark.parametrize("spec", SPECS)
def test_the_state_is_all_that_the_programs_use(spec: str) -> None:
    model = config()
    made = state_specs(model, 5, 40, 30, drafting_of(spec, model), 6)
    used = {n for s, mode in cases() if s == spec for stage in program(spec, mode, "live").stages for n in stage.state}
    assert used == set(made)
    assert made["seq_lens"].shape == (5,)
    assert made.get("draft_tokens", made["seq_lens"]).shape in ((5, BLOCK - 1), (5,))
    assert all(s.shape == (2, 40, 1, 4) for n, s in made.items() if n.startswith("draft_kv"))
