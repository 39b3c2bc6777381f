"""Which algorithm, draft and block a job gets; whatever does not fit is one sentence, before a backend is started."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.serve.jobs.conftest import STRICT, write_draft
from warfence.core.errors import InputError
from warfence.serve.jobs import speculation
from warfence.serve.jobs.job import Job, prepare
from warfence.serve.jobs.options import ServeOptions
from warfence.serve.jobs.run_report import pool_bytes
from warfence.serve.model import load_model
from warfence.serve.spec import SpecAlgorithm, registry
from warfence.serve.spec.ngram import ngram


@pytest.fixture
def options(tiny: Path, prompts: Path) -> ServeOptions:
    return ServeOptions(backend=STRICT, model=tiny, prompts=prompts, max_new_tokens=12)


def made(options: ServeOptions, **changes: Any) -> Job:
    return prepare(replace(options, **changes))


def test_without_speculation_there_is_nothing(options: ServeOptions) -> None:
    spec = made(options).spec
    assert (spec.algorithm.name, spec.draft, spec.drafting, spec.block) == ("none", None, None, 1)


@pytest.mark.parametrize(
    ("spec", "given", "block"),
    [("ngram", None, 6), ("ngram", 3, 3), ("dflash", None, 4), ("dflash", 4, 4), ("eagle", None, 4), ("eagle", 7, 7)],
)
def test_the_block_is_the_algorithms_or_the_drafts_own(
    options: ServeOptions, drafts: dict[str, Path], spec: str, given: int | None, block: int
) -> None:
    job = made(options, spec=spec, block=given, draft=drafts.get(spec))
    assert (job.spec.algorithm.name, job.spec.block, job.limits.block) == (spec, block, block)
    plain = made(options)
    assert job.limits.slots > plain.limits.slots, "slots for the blocks in flight"
    more = (set(pool_bytes(job).items()) - set(pool_bytes(plain).items())) & set(pool_bytes(job).items())
    assert {name for name, _ in more} == {"tables", "state"} | ({"params"} if spec != "ngram" else set())


def test_the_shipped_draft_is_for_the_shipped_model_only(
    options: ServeOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_draft(tmp_path / "eagle", "eagle", load_model().config)
    monkeypatch.setattr(speculation, "SHIPPED", tmp_path)
    shipped = made(options, model=None, spec="eagle").spec
    assert shipped.draft is not None
    assert shipped.draft.path == tmp_path / "eagle"
    with pytest.raises(InputError, match="'eagle' needs a draft and there is none for model 'tiny0'; give --draft DIR"):
        made(options, spec="eagle")
    with pytest.raises(InputError, match="'dflash' needs a draft and there is none for model 'warfence-kjv"):
        made(options, model=None, spec="dflash")
    assert made(options, model=None, spec="ngram").spec.draft is None


def test_a_plug_in_is_found_by_its_name(options: ServeOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._REGISTRY, "theirs", SpecAlgorithm("theirs", make=ngram))
    monkeypatch.setitem(registry._REGISTRY, "bare", SpecAlgorithm("bare"))
    assert made(options, spec="theirs").spec.block == 6
    with pytest.raises(InputError, match="'bare' only declares capabilities; it brings nothing to run"):
        made(options, spec="bare")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"spec": "dflash", "block": 5}, "--block is 5; this draft fills blocks of 4, for which it was trained"),
        ({"spec": "eagle", "block": 1}, "--block is 1; give at least 2: the known token and one proposal"),
        ({"spec": "eagle", "block": 129}, "--block is 129, and a sequence has at most 128 tokens; give a smaller one"),
    ],
)
def test_a_block_that_cannot_be(
    options: ServeOptions, drafts: dict[str, Path], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        made(options, draft=drafts[changes["spec"]], **changes)
    with pytest.raises(InputError, match="--block is 0; give at least 2"):
        made(options, spec="ngram", block=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"hidden": 64},
            "hidden is 64, and that of model 'tiny0' is 32; a draft fits only the model that it was trained",
        ),
        ({"vocab": 97}, "vocab is 97, and that of model 'tiny0' is 1024"),
        ({"algorithm": "eagle"}, "is for the algorithm 'eagle', not 'dflash'; give --spec eagle or another draft"),
        ({"layers": 2}, r"dflash.layer.1.attn_norm is missing \(9 in all\)"),
        ({"taps": [7]}, "taps is .7.; allowed are layers of the model, 0 to 1"),
    ],
)
def test_a_draft_that_does_not_fit(
    options: ServeOptions, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        made(options, spec="dflash", draft=write_draft(tmp_path / "d", "dflash", **changes))


def test_a_draft_that_cannot_be_read(options: ServeOptions, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json cannot be read .*; give a draft directory"):
        made(options, spec="dflash", draft=tmp_path / "absent")
    draft = write_draft(tmp_path / "d", "dflash")
    (draft / "SHA256SUMS").write_text("0" * 64 + "  model.safetensors\n")
    with pytest.raises(InputError, match="the file is damaged or was changed"):
        made(options, spec="dflash", draft=draft)
    (draft / "config.json").write_text(json.dumps([]))
    with pytest.raises(InputError, match="is no config of a draft"):
        made(options, spec="dflash", draft=draft)
