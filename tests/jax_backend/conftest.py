"""A rig that drives forwards of the JAX backend directly: no planner, no engine, a fixed slot for every position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

pytest.importorskip("jax")

from warfence.core.attention import make_attention
from warfence.core.backend import Forward
from warfence.core.batch import Batch, BatchLayout, BatchRow, pack
from warfence.core.forwards import FencePlan
from warfence.core.modes import ForwardMode
from warfence.core.program import REQ_TO_TOKEN
from warfence.serve.fixture import Fixture
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.program import build, sliding_layers
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.model.weights import random_weights
from warfence.serve.sampling import SamplingParams
from warfence_jax.backend import JaxBackend

ROWS, CONTEXT = 3, 24  # row 0 is reserved
SLOTS = 1 + (ROWS - 1) * CONTEXT


def model(sliding: Sequence[bool]) -> ModelConfig:
    return ModelConfig(
        name="tiny", vocab=61, hidden=16, layers=len(sliding), heads=4, kv_heads=2, head_dim=4, ffn=24,
        sliding=tuple(sliding), window=5 if any(sliding) else None, context=CONTEXT, rope_theta=10000.0, norm_eps=1e-5,
        eos_ids=(1,), bos_id=None,
    )  # fmt: skip


def slot(row: int, position: int) -> int:
    """The KV slot of a position of a row (1, 2, ...); the sliding slot is the same."""
    return 1 + (row - 1) * CONTEXT + position


class Rig:
    """One backend with filled tables, and the forwards compiled on it (each once)."""

    def __init__(self, sliding: Sequence[bool], **options: object) -> None:
        self.config = config = model(sliding)
        self.weights = random_weights(config, 3)
        self.backend = JaxBackend(**options)
        self.fixture = Fixture.of_model(self.backend, config, self.weights, context=CONTEXT, rows=ROWS, slots=SLOTS)
        self.tables, self.schedule, self.forward = self.fixture.tables, self.fixture.schedule, self.fixture.lane
        self.launches = 0
        self.fill()

    def fill(self) -> None:
        """Give every row and position its slot."""
        self.fixture.fill_rows()
        self.schedule.synchronize()

    def compile(
        self, attention: str = "captured", mode: ForwardMode = ForwardMode.DECODE, *, rows: int = 1, queries: int = 1,
        gated: bool = False, marker: bool = True,
    ) -> Forward:  # fmt: skip
        made = make_attention(attention, sliding_layers(self.config))
        program = build(self.config, made, mode, BatchLayout(rows, queries), sampled=False)
        stage = FencePlan(made).marker_stage(mode) if marker else None
        return self.fixture.forward(program, stage, gated)

    def batch(self, forward: Forward, rows: Sequence[tuple[int, int, Sequence[int], bool]]) -> Batch:
        """A batch of (row, prefix, tokens, from_relay)."""
        made = [
            BatchRow(row, prefix, tuple(tokens), tuple(slot(row, prefix + i) for i in range(max(len(tokens), 1))), relay,
                     0.0, 1.0, ())
            for row, prefix, tokens, relay in rows
        ]  # fmt: skip
        return pack(forward.program.layout, made)

    def launch(self, forward: Forward, rows: Sequence[tuple[int, int, Sequence[int], bool]] = ((1, 0, (7,), False),)):
        """Issue all three regions of one launch behind the schedule lane; returns its outputs."""
        self.launches += 1
        self.forward.wait_lane(self.schedule)
        return self.fixture.launch(forward, self.batch(forward, rows), self.launches)

    def write(self, cell: int = CONTEXT, value: int = 1, table: str = REQ_TO_TOKEN) -> None:
        self.fixture.write(table, [cell], [value])


PROMPTS = {1: tuple(range(3, 12)), 2: (40, 2, 17)}
DECODES = 9


def serve(rig: Rig, attention: str) -> tuple[dict[int, list[int]], list[float]]:
    """Prefill both prompts in chunks of 4, then decode both rows together from the relay. Tokens and margins."""
    extend, decode = rig.compile(attention, ForwardMode.EXTEND, queries=4), rig.compile(attention, rows=2)
    compiled = rig.backend.compilations
    tokens: dict[int, list[int]] = {}
    for row, prompt in PROMPTS.items():
        for start in range(0, len(prompt), 4):
            given = rig.launch(extend, [(row, start, prompt[start : start + 4], False)]).result()
        tokens[row] = [int(given["next_tokens"][0])]
    pointers = {n: a.unsafe_buffer_pointer() for n, a in rig.backend.state.items()}
    launched = [
        rig.launch(decode, [(row, len(prompt) + i, (), True) for row, prompt in PROMPTS.items()])
        for i in range(DECODES)  # the host learns nothing in between
    ]
    margins = []
    for outputs in launched:
        given = outputs.result()
        margins += given["margin"].tolist()
        for i, row in enumerate(PROMPTS):
            tokens[row].append(int(given["next_tokens"][i]))
    rig.forward.synchronize()
    assert rig.backend.compilations == compiled
    assert {n: a.unsafe_buffer_pointer() for n, a in rig.backend.state.items()} == pointers
    return tokens, margins


def check(rig: Rig, attention: str) -> dict[int, list[int]]:
    """Serve, and compare with the numpy reference."""
    tokens, margins = serve(rig, attention)
    reference = ReferenceModel(rig.config, rig.weights)
    for row, prompt in PROMPTS.items():
        expected = reference.generate(prompt, DECODES + 1, SamplingParams(), row, eos=False)
        assert tokens[row] == expected.tokens
    assert min(margins) > 0
    assert rig.backend.report()["donation"] == "in place"
    return tokens


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One sliding layer and donated tables, shared by tests that leave the lanes unharmed."""
    made = Rig((True,))
    yield made
    made.backend.close()


@pytest.fixture(scope="module")
def aliased_rig() -> Iterator[Rig]:
    """One sliding layer and aliased tables, shared likewise."""
    made = Rig((True,), tables="aliased")
    yield made
    made.backend.close()


MakeRig = Callable[..., Rig]


@pytest.fixture
def make_rig() -> Iterator[MakeRig]:
    """Makes rigs of one test alone; `sliding` gives the layers. All are closed in the end."""
    made: list[Rig] = []

    def make(sliding: Sequence[bool] = (True,), **options: object) -> Rig:
        made.append(Rig(sliding, **options))
        return made[-1]

    yield make
    for rig in made:
        rig.backend.close()
