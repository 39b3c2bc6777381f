"""One small model with a draft on plain arrays, its rows' slots scattered: programs are run on them stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from tests.parity.suite.by_hand import Dense
from warfence.core.attention import make_attention
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.modes import ForwardMode
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN, ForwardProgram
from warfence.host.stage_calls import bind
from warfence.parity.kernels import KERNELS
from warfence.parity.small import SmallModel, small_model
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.program import build, sliding_layers, state_specs
from warfence.serve.spec import Draft, get
from warfence.serve.spec.draft import draft_shapes

BLOCK = 4
LAYERS, TAPS = {"dflash": 2, "eagle": 1}, {"dflash": (0, 2), "eagle": ()}
ROWS, CONTEXT, CHUNK = 4, 32, 8
EXTEND, VERIFY, DECODE = ForwardMode.EXTEND, ForwardMode.TARGET_VERIFY, ForwardMode.DECODE
LAYOUTS = {
    EXTEND: BatchLayout(3, CHUNK), VERIFY: BatchLayout(3, BLOCK, 2 * BLOCK), DECODE: BatchLayout(3, 1, BLOCK)
}  # fmt: skip


@cache
def shared_small_model() -> SmallModel:
    """Made once a process: its reference text takes a while."""
    return small_model()


def random_draft(config: ModelConfig, algorithm: str) -> Draft:
    """A draft of one seed; DFLASH's has two layers and taps the first and the last layer of three."""
    layers, taps, rng = LAYERS[algorithm], TAPS[algorithm], np.random.default_rng(1)
    shapes = draft_shapes(algorithm, config, layers, taps)
    weights = {n: (rng.standard_normal(s) * s[0] ** -0.5).astype(np.float32) for n, s in shapes.items()}
    return Draft(algorithm, BLOCK, layers, taps, weights)


class Paged:
    """Rows 1 to 3 may be used; every batch has padding unless all three are in it."""

    def __init__(self, small: SmallModel, spec: str, attention: str = "captured") -> None:
        self.config = small.config
        self.drafting = get(spec).drafting(small.config, random_draft(small.config, spec), BLOCK)
        assert self.drafting is not None
        self.attention = make_attention(attention, sliding_layers(small.config))
        weights = {**small.weights, **self.drafting.weights}
        self.dense = Dense(small.config, weights)
        slots = ROWS * CONTEXT
        specs = state_specs(small.config, ROWS, slots, slots, self.drafting, max(CHUNK, BLOCK))
        self.state = {name: np.zeros(spec.shape, spec.dtype) for name, spec in specs.items()}
        order = np.random.default_rng(0).permutation(np.arange(1, slots, dtype=np.int32))
        self.table = np.zeros((ROWS, CONTEXT), np.int32)
        self.table[1:] = order[: (ROWS - 1) * CONTEXT].reshape(ROWS - 1, CONTEXT)
        swa = np.zeros((1, slots), np.int32)
        swa[0, order] = order[::-1]
        self.fixed = {**weights, **self.state, REQ_TO_TOKEN: self.table, FULL_TO_SWA: swa}

    def extend(self, row: int, tokens: Sequence[int], start: int = 0) -> dict[str, np.ndarray]:
        """One chunk of a prompt."""
        slots = tuple(int(s) for s in self.table[row, start : start + len(tokens)])
        return self.run(self.build(EXTEND), [BatchRow(row, start, tuple(tokens), slots, False, 0.0, 1.0, ())])

    def decoding(self, mode: ForwardMode, *rows: int) -> dict[str, np.ndarray]:
        """A verify, or a plain decode, of rows that stand where the device says."""
        new = LAYOUTS[mode].queries
        return self.run(self.build(mode), [BatchRow(row, 0, (), (), True, 0.0, 1.0, (), new) for row in rows])

    def draft_extend(self, after: ForwardMode, *rows: int) -> dict[str, np.ndarray]:
        """The draft's own launch, for the batch of the launch before it."""
        program = self.drafting.draft_extend(self.attention.for_draft(), LAYOUTS[after])
        return self.run(program, [BatchRow(row, 0, (), (), True, 0.0, 1.0, ()) for row in rows])

    def build(self, mode: ForwardMode) -> ForwardProgram:
        return build(self.config, self.attention, mode, LAYOUTS[mode], sampled=False, drafting=self.drafting)

    def run(self, program: ForwardProgram, rows: list[BatchRow]) -> dict[str, np.ndarray]:
        batch = pack(program.layout, rows)
        workspace = {name: batch.view(name) for name in program.layout.fields}
        for stage in program.stages:
            bind(stage, self.fixed, KERNELS)(workspace)
        return workspace

    def scores(self, hidden: np.ndarray, norm: str = "norm") -> np.ndarray:
        """Logits of one hidden state, with the target's head."""
        return self.dense.norm(hidden, norm) @ self.dense.weights["head"]
