"""Laws under hypothesis: random programs and random loops, against the neutral model, on every backend.

`WARFENCE_EXAMPLES=1000` makes each test look at that many examples instead of a few.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warfence.backends import load
from warfence.core.modes import FenceMode
from warfence.parity.random_programs import RandomBench, RandomProgram, random_programs
from warfence.parity.small import SmallModel, first_difference
from warfence.serve.engine import Engine
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.requests import Request
from warfence.serve.sampling import SamplingParams

Target = tuple[str, str]
pytestmark = pytest.mark.slow
ASKED = int(os.environ.get("WARFENCE_EXAMPLES", "0"))
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def examples(few: int) -> Any:
    return settings(max_examples=ASKED or few, suppress_health_check=SHARED, deadline=None)


@pytest.fixture(scope="module")
def random_bench(target: Target) -> Iterator[RandomBench]:
    backend = load(target[0])(device=target[1])
    yield RandomBench(backend)
    backend.close()


@examples(12)
@given(case=random_programs())
def test_random_programs_release_where_the_model_says(random_bench: RandomBench, case: RandomProgram) -> None:
    random_bench.check(case)


request_shapes = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 30), st.booleans()), min_size=1, max_size=14
)  # prompt length, new tokens, whether it samples


@examples(6)
@given(shapes=request_shapes, seed=st.integers(0, 2**16), fence=st.sampled_from([FenceMode.FINE, FenceMode.COARSE]))
def test_random_loops_give_the_tokens_of_the_reference(
    target: Target, engines: Callable[..., Engine], small: SmallModel,
    shapes: list[tuple[int, int, bool]], seed: int, fence: FenceMode,
) -> None:  # fmt: skip
    engine = engines(target, attention="captured", sampled=True)
    reference = ReferenceModel(small.config, small.weights)
    requests, expected = [], []
    for i, (length, new, samples) in enumerate(shapes):
        prompt = tuple((seed + 7 * i + 3 * k * k) % 96 for k in range(length))
        params = SamplingParams(0.9, 0.8, seed) if samples else SamplingParams()
        requests.append(Request(i, prompt, new, params))
        expected.append(reference.generate(prompt, new, params, i).tokens)
    engine.run(requests, fence=fence)
    assert first_difference(requests, expected) is None
