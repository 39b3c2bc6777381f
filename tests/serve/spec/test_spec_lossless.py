"""Speculation changes no token: every algorithm, greedy and sampled, behind every fence, in pools that run short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.serve.spec.oracle import Oracle
from tests.strict_log import writes_before_earlier_reads
from warfence.core.attention import attention_names
from warfence.core.modes import FenceMode
from warfence.parity.small import SIZES, SmallModel, first_difference, make_engine, serve, workload
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.engine import Engine, EngineConfig, Summary
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.requests import Request
from warfence.serve.spec import NGRAM

SPECS = ("ngram", "ngram-snapshot", "dflash", "eagle")
pytestmark = pytest.mark.slow


def engine(
    small: SmallModel, spec: str, sampled: bool = False, backend: dict[str, Any] | None = None, **config: Any
) -> Engine:
    """With a draft that knows the text, so that blocks are accepted to every length."""
    texts = [(*r.prompt, *tokens) for r, tokens in zip(workload(sampled), small.expected[sampled], strict=True)]
    strict = StrictBackend(kernels=Oracle(texts).kernels(), **(backend or {}))
    return make_engine(small, strict, spec, sampled=sampled, **config)


def served(made: Engine, small: SmallModel, **how: Any) -> Summary:
    """Serve the workload; every token is right."""
    requests, summary = serve(made, **how)
    assert first_difference(requests, small.expected[made.config.sampled]) is None
    return summary


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
@pytest.mark.parametrize("spec", SPECS)
def test_the_text_is_that_of_plain_decoding_behind_every_fence_and_not_without_one(
    small: SmallModel, spec: str, sampled: bool
) -> None:
    with engine(small, spec, sampled, slots=98) as made:
        runs = {how: served(made, small, fence=how) for how in (FenceMode.FINE, FenceMode.COARSE, FenceMode.SELF)}
        twin = served(made, small, serial=True)
        requests, _ = serve(made, fence=FenceMode.OFF)
        assert first_difference(requests, small.expected[sampled]) is not None, "the hazard is real"
    with make_engine(small, StrictBackend(), sampled=sampled) as plain:
        steps_of_plain_decoding = served(plain, small).steps
    for summary in (*runs.values(), twin):
        assert summary.spec["tokens"] > 1.7 * summary.spec["rows"], "blocks are accepted"
        assert summary.steps < steps_of_plain_decoding
        assert summary.spec["fallbacks"] > 0
        assert summary.happened["slots_returned"] > 0
    assert all(summary.happened["retractions"] > 0 for summary in runs.values())
    steps = {how: summary.steps for how, summary in runs.items()}
    assert runs[FenceMode.FINE].barriers["fine"] > 0
    assert runs[FenceMode.COARSE].barriers == {"fine": 0, "coarse": steps[FenceMode.COARSE], "off": 0, "host": 0}
    assert runs[FenceMode.SELF].barriers == {"fine": 0, "coarse": 0, "off": 0, "host": steps[FenceMode.SELF]}
    assert not any(twin.barriers.values())


@pytest.mark.parametrize("kind", attention_names())
@pytest.mark.parametrize("spec", SPECS)
def test_with_every_kind_of_attention(small: SmallModel, spec: str, kind: str) -> None:
    with engine(small, spec, attention=kind) as made:
        summary = served(made, small)
        assert writes_before_earlier_reads(made.backend.log) == []
    verified = summary.steps_by_mode["target_verify"]
    owned = verified + summary.steps_by_mode["extend"] if spec == "eagle" else 0
    assert summary.policies.get("none", 0) >= (verified if spec in ("ngram", "eagle") else 0)
    assert summary.barriers["fine"] >= owned, "eagle's draft publishes, whatever the sliding layers do"


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
@pytest.mark.parametrize("kind", ["captured", "live", "rereading"])
@pytest.mark.parametrize("spec", SPECS)
def test_decoding_rows_ride_along_in_prefill_batches(small: SmallModel, spec: str, kind: str, sampled: bool) -> None:
    """A rider's verify may be in flight: where it stands, and with which draw it goes on, is known on the device alone."""
    with engine(small, spec, sampled, attention=kind, mixed=True, rows=4, extend_rows=1, slots=150) as made:
        for how in ({"fence": FenceMode.FINE}, {"fence": FenceMode.COARSE}, {"serial": True}):
            summary = served(made, small, **how)
            assert summary.steps_by_mode["mixed"] > 2
            assert summary.steps_by_mode["target_verify"] > 0
        assert writes_before_earlier_reads(made.backend.log) == []


def test_a_mixed_step_of_eagle_ends_in_its_drafts_launch_and_is_fine(small: SmallModel) -> None:
    with engine(small, "eagle", mixed=True, rows=4, extend_rows=1, slots=400) as made:
        summary = served(made, small)
    assert summary.steps_by_mode["mixed"] > 2
    assert summary.barriers["fine"] == summary.steps


ROOM = {"slots": 400, "swa_slots": 200}
OTHERS = [
    *((spec, {"backend": {"adversary": "raw"}}) for spec in SPECS), *((spec, ROOM) for spec in SPECS),
    ("ngram", {"idle": True}), ("eagle", {"idle": True}), ("dflash", {"rows": 1}), ("dflash", {"markers": False}),
    ("eagle", {"backend": {"external_markers": False}}),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "how"), OTHERS, ids=lambda part: part if isinstance(part, str) else "+".join(part))
def test_with_another_adversary_without_markers_with_idle_batches_and_with_room(
    small: SmallModel, spec: str, how: dict[str, Any]
) -> None:
    with engine(small, spec, **how) as made:
        summary = served(made, small)
    if how is ROOM:
        assert (summary.spec["fallbacks"], summary.happened["retractions"]) == (0, 0)
        assert "decode" not in summary.steps_by_mode


@pytest.mark.parametrize("promise", ["supports_target_verify_read_done", "supports_prefill_read_done"])
def test_a_promise_that_is_not_kept_lets_writes_overtake_reads(
    small: SmallModel, promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N-grams read once more in the tail. Only what is proposed suffers, so the text stays right: the log shows it."""
    monkeypatch.setenv("WARFENCE_ENABLE_PREFILL_WAR_READ_DONE", "1")
    for spec, kept in ((NGRAM, True), (replace(NGRAM, **{promise: True}), False)):
        backend, config = StrictBackend(), EngineConfig(**SIZES, attention="snapshot")
        with Engine(config, small.config, small.weights, backend, spec, None, 4) as made:
            assert len([*made.warm_up()]) == len(made.wanted())
            served(made, small)
        overtaken = writes_before_earlier_reads(backend.log)
        assert {read.stage for _, read in overtaken} == (set() if kept else {"ngram_page_table"})


@pytest.mark.parametrize("spec", SPECS)
def test_with_the_small_drafts_own_proposals(small: SmallModel, spec: str) -> None:
    with make_engine(small, StrictBackend(), spec, sampled=True) as made:
        assert served(made, small).spec["tokens"] > 0


@pytest.mark.parametrize("spec", ["dflash", "ngram-snapshot"])
def test_with_the_prefill_switch_who_reads_nothing_behind_publishes_in_every_step(
    small: SmallModel, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARFENCE_ENABLE_PREFILL_WAR_READ_DONE", "1")
    with engine(small, spec, attention="snapshot") as made:
        summary = served(made, small)
    assert summary.barriers["fine"] == summary.steps == summary.policies["pre_replay"]


@pytest.mark.parametrize("spec", SPECS)
def test_requests_that_fill_the_context_to_its_last_position(small: SmallModel, spec: str) -> None:
    """Blocks run over the end: what is chosen there is dropped, what is written there goes to slot 0."""
    context, reference = 24, ReferenceModel(small.config, small.weights)
    prompts = [r.prompt[:n] for r, n in zip(workload(False), (1, 7, 12, 20, 23), strict=False)]
    requests = [Request(i, p, context - len(p), stop_at_eos=False) for i, p in enumerate(prompts)]
    expected = [reference.generate(r.prompt, r.max_new_tokens, r.params, r.id, eos=False).tokens for r in requests]
    oracle = Oracle([(*r.prompt, *tokens) for r, tokens in zip(requests, expected, strict=True)])
    with make_engine(small, StrictBackend(kernels=oracle.kernels()), spec, context=context) as made:
        summary = made.run(requests)
    assert first_difference(requests, expected) is None
    assert summary.spec["tokens"] > 1.5 * summary.spec["rows"]
    assert [len(r.prompt) + len(r.output) for r in requests] == [context] * len(prompts)
