"""Sampled speculation keeps the model's own distribution: a chi-square test with a stated error rate, shown able to fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from warfence.parity.kernels import KERNELS
from warfence.parity.small import SmallModel, make_engine
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.requests import Request
from warfence.serve.sampling import SamplingParams

ERROR_RATE = 1e-6  # of rejecting a right sampler, were the seeds not fixed
Rule = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, np.ndarray]]
pytestmark = pytest.mark.slow


def probabilities(logits: np.ndarray, temperature: float, top_p: float) -> np.ndarray:
    """What a token is chosen with, in float64: softmax, then the smallest set of best tokens that reaches top_p."""
    weight = np.exp((logits - logits.max()) / temperature)
    p = weight / weight.sum()
    kept = np.zeros_like(p)
    for token in np.argsort(-p, kind="stable"):
        if kept.sum() >= top_p:
            break
        kept[token] = p[token]
    return kept / kept.sum()


def rejects(counts: np.ndarray, expected: np.ndarray) -> bool:
    """Pearson's chi-square at ERROR_RATE. Cells of fewer than five are taken together; one that cannot be must be empty.

    The bound on the statistic is that of Laurent and Massart (2000, lemma 1): P(X - k > 2 sqrt(k x) + 2 x) <= exp(-x).
    """
    if counts[expected == 0].any():
        return True
    large = expected >= 5
    cells = [*zip(counts[large], expected[large], strict=True)]
    if expected[~large].sum() >= 5:
        cells.append((counts[~large].sum(), expected[~large].sum()))
    statistic = sum((n - e) ** 2 / e for n, e in cells)
    k, x = len(cells) - 1, -math.log(ERROR_RATE)
    return bool(statistic > k + 2 * math.sqrt(k * x) + 2 * x)


# -- rules of acceptance, one right and three wrong


def verify(env: Mapping[str, Any], attrs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return KERNELS["verify"](env, attrs)


def emitting(given: dict[str, np.ndarray], env: Mapping[str, Any], accepted: np.ndarray) -> dict[str, np.ndarray]:
    """The proposals up to `accepted`, and there what was chosen."""
    chosen, q = given["next_tokens"], np.arange(given["next_tokens"].shape[1])
    tokens = np.where(q[:-1] < accepted[:, None], env["tokens"][:, 1:], chosen[:, :-1])
    tokens = np.concatenate([tokens, chosen[:, -1:]], axis=1).astype(np.int32)
    last = np.take_along_axis(tokens, accepted[:, None], axis=1)[:, 0]
    return given | {"next_tokens": tokens, "accept_lens": (accepted + 1).astype(np.int32), "last_token": last}


def every_proposal(env: Mapping[str, Any], attrs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    b, q = env["tokens"].shape
    return emitting(verify(env, attrs), env, np.full(b, q - 1))


def whatever_is_likeliest(env: Mapping[str, Any], attrs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Accepts as greedy decoding would, while sampling."""
    right = env["logits"].argmax(-1)[:, :-1] == env["tokens"][:, 1:]
    return emitting(verify(env, attrs), env, np.cumprod(right, axis=1).sum(axis=1))


def one_draw_for_all(env: Mapping[str, Any], attrs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return verify({**env, "uniform": np.repeat(env["uniform"][:, :1], env["uniform"].shape[1], axis=1)}, attrs)


WRONG = pytest.mark.parametrize("rule", [every_proposal, whatever_is_likeliest, one_draw_for_all])

# -- the op alone: many rows of a Markov chain, whose every distribution is known

VOCAB, BLOCK, ROWS, TOKENS = 5, 4, 20_000, 3


def chain() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 1.2, (VOCAB, VOCAB)).astype(np.float32)


def counted(rule: Rule, temperature: float, top_p: float, seed: int) -> np.ndarray:
    """How often each sequence of TOKENS tokens came behind token 0, in as many verifies as it takes."""
    logits, rng = chain(), np.random.default_rng(seed)
    draws = rng.random((ROWS, TOKENS + 2 * BLOCK), np.float32)
    likely = logits.argmax(-1)
    emitted = np.zeros((ROWS, TOKENS + 2 * BLOCK), np.int32)
    at, known, every = np.zeros(ROWS, np.int64), np.zeros(ROWS, np.int32), np.arange(ROWS)
    while (at < TOKENS).any():
        block = [known]
        for _ in range(BLOCK - 1):  # half of the proposals are the likeliest, half are anything
            block.append(np.where(rng.random(ROWS) < 0.5, likely[block[-1]], rng.integers(0, VOCAB, ROWS)))
        tokens = np.stack(block, axis=1).astype(np.int32)
        begin = np.minimum(at, TOKENS)[:, None] + np.arange(BLOCK)
        env = {
            "logits": logits[tokens], "tokens": tokens, "uniform": np.take_along_axis(draws, begin, axis=1),
            "temperature": np.full(ROWS, temperature, np.float32), "top_p": np.full(ROWS, top_p, np.float32),
        }  # fmt: skip
        given = rule(env, {"sampled": True})
        for q in range(BLOCK):
            used = (q < given["accept_lens"]) & (at < TOKENS)
            emitted[every[used], at[used] + q] = given["next_tokens"][used, q]
        known, at = given["last_token"], np.where(at < TOKENS, at + given["accept_lens"], at)
    index = emitted[:, 0] * VOCAB**2 + emitted[:, 1] * VOCAB + emitted[:, 2]
    return np.bincount(index, minlength=VOCAB**TOKENS)


def known_counts(temperature: float, top_p: float) -> np.ndarray:
    p = np.stack([probabilities(row, temperature, top_p) for row in chain().astype(np.float64)])
    return ROWS * np.einsum("a,ab,bc->abc", p[0], p, p).ravel()


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 0.9), (1.5, 0.6)])
def test_sequences_come_as_often_as_the_model_says(temperature: float, top_p: float) -> None:
    for seed in range(3):
        assert not rejects(counted(verify, temperature, top_p, seed), known_counts(temperature, top_p))


@WRONG
def test_a_wrong_rule_is_rejected(rule: Rule) -> None:
    assert rejects(counted(rule, 1.0, 1.0, 0), known_counts(1.0, 1.0))


def test_another_temperature_or_top_p_is_rejected() -> None:
    assert rejects(counted(verify, 1.0, 1.0, 0), known_counts(1.1, 1.0))
    assert rejects(counted(verify, 1.0, 0.95, 0), known_counts(1.0, 0.9))


# -- served: the same prompt many times, each request with draws of its own

PROMPT, REQUESTS, PARAMS = (3, 8, 3, 8, 3), 900, SamplingParams(0.5, 0.9, seed=2)


def served(small: SmallModel, rule: Rule) -> np.ndarray:
    """How often each second token came. The first is the prefill's; the second comes out of a verify."""
    strict = StrictBackend(kernels={**KERNELS, "verify": rule})
    room = {"rows": 32, "extend_rows": 16, "context": 32, "slots": 32 * 32, "swa_slots": 32 * 32}
    with make_engine(small, strict, "ngram", sampled=True, **room) as engine:
        requests = [Request(i, PROMPT, 3, PARAMS, stop_at_eos=False) for i in range(REQUESTS)]
        summary = engine.run(requests)
    assert "decode" not in summary.steps_by_mode
    assert summary.spec["tokens"] > 1.1 * summary.spec["rows"], "some proposals are accepted"
    return np.bincount([r.output[1] for r in requests], minlength=small.config.vocab)


def second_token(small: SmallModel) -> np.ndarray:
    reference = ReferenceModel(small.config, small.weights)

    def following(*tokens: int) -> np.ndarray:
        last = reference.logits((*PROMPT, *tokens))[-1].astype(np.float64)
        return probabilities(last, PARAMS.temperature, PARAMS.top_p)

    first = following()
    return REQUESTS * sum(first[t] * following(int(t)) for t in np.flatnonzero(first))


def test_served_tokens_come_as_often_as_the_reference_model_says(small: SmallModel) -> None:
    assert not rejects(served(small, verify), second_token(small))


def test_served_by_a_wrong_rule_they_do_not(small: SmallModel) -> None:
    assert rejects(served(small, every_proposal), second_token(small))
