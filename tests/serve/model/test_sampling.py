"""The rule that torch and JAX kernels mirror: generator, order, cut and pick."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from warfence.core.errors import InputError
from warfence.serve.sampling import SamplingParams, choose, philox, uniform

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "output"),
    [  # `philox4x32 10` of kat_vectors in Random123, the authors' own code
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ONES, ONES, ONES, ONES), (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_the_published_vectors(
    counter: tuple[int, int, int, int], key: tuple[int, int], output: tuple[int, int, int, int]
) -> None:
    assert philox(counter, key) == output


def test_uniform_is_the_upper_24_bits_of_the_first_word() -> None:
    assert uniform(0, 0, 0) == (0x6627E8D5 >> 8) / 2**24
    full = 2**64 - 1
    assert uniform(full, full, full) == (0x408F276D >> 8) / 2**24
    assert uniform(0x299F31D0_A4093822, 0x03707344_13198A2E, 0x85A308D3_243F6A88) == (0xD16CFE09 >> 8) / 2**24


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_uniform_is_below_one_and_exact_in_float32(seed: int, request: int, position: int) -> None:
    u = uniform(seed, request, position)
    assert 0.0 <= u < 1.0
    assert float(np.float32(u)) == u


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_uniform_is_uniform_along_each_argument(axis: int) -> None:
    arguments = [5, 6, 7]
    draws = []
    for value in range(4096):
        arguments[axis] = value
        draws.append(uniform(*arguments))
    counts = np.histogram(draws, bins=16, range=(0, 1))[0]
    chi_square = float(((counts - 256) ** 2 / 256).sum())
    assert chi_square < 45, "15 degrees of freedom: 45 is passed by chance once in ten thousand, and these are fixed"
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.06


def test_greedy_takes_the_lowest_index_of_the_greatest() -> None:
    assert choose(np.array([1, 3, 2, 3], np.float32), SamplingParams(), 0.9) == (1, 0.0)
    assert choose(np.array([1, 3, 2.5], np.float32), SamplingParams(), 0.9) == (1, 0.5)
    assert choose(np.array([4], np.float32), SamplingParams(), 0.9) == (0, math.inf)


def test_a_worked_example() -> None:
    """p = 1/2, 1/4, 1/8, 1/8; top_p 0.6 keeps the first two (the sum before the second is 0.5), so mass = 3/4."""
    logits = np.log(np.array([0.125, 0.5, 0.25, 0.125], np.float32))
    params = SamplingParams(temperature=1.0, top_p=0.6)
    for u, token, margin in [(0.0, 1, 0.0), (0.5, 1, 0.125), (0.75, 2, 0.0625), (1 - 2**-24, 2, 0.0)]:
        picked, seen = choose(logits, params, u)
        assert (picked, seen) == (token, pytest.approx(margin, abs=1e-6))


def brute_force(logits: list[float], params: SamplingParams, u: float) -> tuple[int, float, float]:
    """The rule in plain Python floats: token, margin, and how near a sum is to the cut at top_p."""
    top = max(logits)
    weights = [math.exp((value - top) / params.temperature) for value in logits]
    ranked = sorted(((weight / sum(weights), -index) for index, weight in enumerate(weights)), reverse=True)
    kept, edge, nearest_cut = [], 0.0, math.inf
    for probability, negative in ranked:
        if kept:
            nearest_cut = min(nearest_cut, abs(edge - params.top_p))
        if kept and not edge < params.top_p:
            break
        kept.append((edge, edge + probability, -negative))
        edge += probability
    target = u * edge
    low, high, token = next((item for item in kept if item[1] > target), kept[-1])
    return token, min(target - low, high - target), nearest_cut


# A coarse grid: equal logits are exactly equal and unequal ones stay in order, whatever the rounding.
GRID = st.integers(-24, 24).map(lambda step: step / 8)


@given(
    st.lists(GRID, min_size=1, max_size=40),
    st.sampled_from([0.25, 0.7, 1.0, 2.0]),
    st.floats(0.01, 1.0),
    st.integers(0, 2**24 - 1).map(lambda bits: bits / 2**24),
)
@example([0.0, 0.0, 0.0], 1.0, 1.0, 0.5)
@example([3.0, -3.0], 0.25, 0.01, 1 - 2**-24)
def test_choose_agrees_with_brute_force(logits: list[float], temperature: float, top_p: float, u: float) -> None:
    params = SamplingParams(temperature, top_p)
    token, margin, nearest_cut = brute_force(logits, params, u)
    assume(nearest_cut > 1e-5)  # nearer than rounding, either side of the cut is right
    picked, seen = choose(np.array(logits, np.float32), params, u)
    assert seen == pytest.approx(max(margin, 0.0), abs=1e-5)
    if margin > 1e-5:
        assert picked == token


def test_draws_follow_the_probabilities() -> None:
    logits = np.log(np.array([0.1, 0.6, 0.3], np.float32))
    tokens = [choose(logits, SamplingParams(1.0), uniform(3, 0, position))[0] for position in range(3000)]
    np.testing.assert_allclose(np.bincount(tokens) / 3000, [0.1, 0.6, 0.3], atol=0.03)


def test_great_logits_and_the_smallest_temperature_do_not_overflow() -> None:
    logits = np.array([3e4, -3e4, 2.9e4], np.float32)
    token, margin = choose(logits, SamplingParams(temperature=1e-3), 0.5)
    assert (token, margin) == (0, 0.5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"temperature": -1.0}, "temperature is -1.0; allowed are 0 (greedy) and 0.001 or more"),
        ({"temperature": 1e-9}, "temperature is 1e-09"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"temperature": math.inf}, "temperature is inf"),
        ({"top_p": 0.0}, "top_p is 0.0; allowed is more than 0 up to 1"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"top_p": math.nan}, "top_p is nan"),
        ({"seed": -1}, "seed is -1; allowed is 0 to 2**64 - 1"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
    ],
)
def test_bad_parameters_are_named(values: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        SamplingParams(**values)  # type: ignore[arg-type]
