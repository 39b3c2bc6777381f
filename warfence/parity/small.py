"""A small random model and a workload that makes everything happen: chunks, eviction, recycling, retraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warfence.core.backend import Backend
from warfence.serve.engine import Engine, EngineConfig, Summary
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.model.weights import Weights, random_weights
from warfence.serve.requests import Request
from warfence.serve.sampling import NEAR_TIE, SamplingParams
from warfence.serve.spec import Draft, Drafting, get
from warfence.serve.spec.draft import draft_shapes

SIZES: dict[str, Any] = {"rows": 4, "chunk": 8, "extend_rows": 2, "context": 96, "slots": 110, "swa_slots": 44}
GREEDY = SamplingParams()
BLOCK = 4  # tokens of a verify
SAMPLED = SamplingParams(temperature=0.8, top_p=0.9, seed=5)


@dataclass(frozen=True)
class SmallModel:
    """The model, and what the numpy reference says about the workload."""

    config: ModelConfig
    weights: Weights
    expected: dict[bool, list[list[int]]]  # sampled? -> tokens of each request, by the numpy reference


def workload(sampled: bool) -> list[Request]:
    """Twelve requests of mixed lengths; with `sampled`, every other one draws its tokens."""
    rng = np.random.default_rng(0)
    made = []
    for i in range(12):
        prompt = tuple(int(t) for t in rng.integers(0, 96, int(rng.integers(1, 30))))
        new = int(rng.integers(1, 24))
        made.append(Request(i, prompt, new, SAMPLED if sampled and i % 2 else GREEDY))
    return made


def small_model() -> SmallModel:
    """Three layers, two of them sliding; random weights of one seed."""
    config = ModelConfig(
        name="small", vocab=97, hidden=32, layers=3, heads=4, kv_heads=2, head_dim=8, ffn=64,
        sliding=(True, False, True), window=8, context=96, rope_theta=10000.0, norm_eps=1e-5,
        eos_ids=(96,), bos_id=None,
    )  # fmt: skip
    weights = random_weights(config, seed=0)
    reference = ReferenceModel(config, weights)
    expected = {
        sampled: [reference.generate(r.prompt, r.max_new_tokens, r.params, r.id).tokens for r in workload(sampled)]
        for sampled in (False, True)
    }
    return SmallModel(config, weights, expected)


def small_draft(config: ModelConfig, algorithm: str) -> Draft | None:
    """A random draft of one seed; None for an algorithm that needs none. What it proposes is hardly ever right, so tests of
    acceptance use n-grams, or the shipped drafts."""
    if not get(algorithm).needs_draft:
        return None
    layers, taps = 1, (0, 2) if algorithm == "dflash" else ()
    rng = np.random.default_rng(1)
    shapes = draft_shapes(algorithm, config, layers, taps)
    weights = {n: (rng.standard_normal(s) * s[0] ** -0.5).astype(np.float32) for n, s in shapes.items()}
    return Draft(algorithm, BLOCK, layers, taps, weights)


def small_drafting(config: ModelConfig, algorithm: str) -> Drafting | None:
    """What the algorithm adds to programs of the small model, in blocks of `BLOCK`."""
    spec = get(algorithm)
    return spec.drafting(config, small_draft(config, algorithm), BLOCK)


def make_engine(small: SmallModel, backend: Backend, spec: str = "none", **config: Any) -> Engine:
    """An engine for the small model, warmed up. spec: the name of a speculative algorithm."""
    draft = small_draft(small.config, spec)
    chosen = EngineConfig(**{**SIZES, **config})
    engine = Engine(chosen, small.config, small.weights, backend, get(spec), draft, BLOCK)
    try:
        for _ in engine.warm_up():
            pass
    except BaseException:
        backend.close()
        raise
    return engine


def serve(engine: Engine, **how: Any) -> tuple[list[Request], Summary]:
    """Serve the workload and give back requests with their tokens, and the summary. Nothing is compiled meanwhile."""
    requests = workload(engine.config.sampled)
    made = engine.backend.compilations
    summary = engine.run(requests, **how)
    assert engine.backend.compilations == made, "something was compiled after warm-up"
    return requests, summary


def first_difference(requests: list[Request], expected: list[list[int]]) -> str | None:
    """A sentence about the first wrong token; None when all are right or only near ties differ."""
    for request, right in zip(requests, expected, strict=True):
        if request.output == right:
            continue
        at = next((i for i, (a, b) in enumerate(zip(request.output, right, strict=False)) if a != b), len(right))
        margin = request.margins[at] if at < len(request.margins) else float("nan")
        if margin < NEAR_TIE:
            print(f"near tie: request {request.id}, position {at}, margin {margin:.2e}")
            continue
        seen, wanted = request.output[at : at + 4], right[at : at + 4]
        return f"request {request.id}, position {at}: {seen} instead of {wanted}, margin {margin}"
    return None
