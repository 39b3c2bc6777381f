"""A forward whose rows stand where only the device knows, and that reads a table once more in its tail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warfence.core.backend import FORWARD, SCHEDULE, ArraySpec
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN, ForwardProgram, Stage
from warfence.serve.fixture import Fixture
from warfence_jax.backend import JaxBackend
from warfence_jax.forward import JaxForward

ROWS, CONTEXT, QUERIES, WINDOW = 3, 8, 3, 2
LAYOUT = BatchLayout(1, QUERIES, draws=QUERIES)
HISTORY = (0, 6, 7, 0, 6, 8)  # of row 1

PAGE_TABLE = Stage(
    "page_table",
    Region.LOAD_BATCH,
    "page_table",
    reads=(REQ_TO_TOKEN,),
    takes=("req_pool_indices",),
    gives=("page_table",),
)
STAGES = (
    Stage("resolve", Region.LOAD_BATCH, "resolve",
          takes=("input_ids", "from_relay", "req_pool_indices", "prefix_lens", "uniform"),
          gives=("tokens", "positions", "prefix_lens", "uniform"), state=("relay", "seq_lens", "draft_tokens"),
          attrs={"proposals": True}),
    PAGE_TABLE,
    Stage("token_locs", Region.LOAD_BATCH, "token_locs", takes=("page_table", "positions", "extend_lens"),
          gives=("out_cache_loc",)),
    Stage("swa_page_table", Region.LOAD_BATCH, "swa_page_table", reads=(REQ_TO_TOKEN, FULL_TO_SWA),
          takes=("req_pool_indices",), gives=("swa_page_table",)),
    Stage("swa_window", Region.REPLAY, "swa_window", takes=("swa_page_table", "prefix_lens", "positions", "extend_lens"),
          gives=("swa_table", "swa_out_cache_loc"), attrs={"window": WINDOW}),
    Stage("store", Region.REPLAY, "ngram_store", takes=("tokens", "out_cache_loc"), state=("slot_tokens",)),
    Stage("commit", Region.TAIL, "commit", takes=("from_relay", "extend_lens", "req_pool_indices", "prefix_lens"),
          state=("relay", "seq_lens"), attrs={"token": "from_relay", "lens": "extend_lens"}),
    replace(PAGE_TABLE, name="page_table_again", region=Region.TAIL),
    Stage("lookup", Region.TAIL, "ngram_lookup", takes=("page_table", "req_pool_indices"), gives=("proposals",),
          state=("relay", "seq_lens", "slot_tokens"), attrs={"gram": 2, "count": QUERIES - 1}),
    Stage("keep", Region.TAIL, "keep_drafts", takes=("proposals", "req_pool_indices"), state=("draft_tokens",)),
)  # fmt: skip
OUTPUTS = ("tokens", "positions", "prefix_lens", "out_cache_loc", "swa_table", "swa_out_cache_loc", "proposals")
PROGRAM = ForwardProgram("late", ForwardMode.TARGET_VERIFY, LAYOUT, STAGES, OUTPUTS)


def make(backend: JaxBackend, *, gated: bool = False) -> JaxForward:
    """Tables that turn the slots around, and the forward."""
    slots = ROWS * CONTEXT
    fixture = Fixture(
        backend,
        {REQ_TO_TOKEN: ArraySpec((ROWS, CONTEXT)), FULL_TO_SWA: ArraySpec((1, slots))},
        state={
            "relay": ArraySpec((ROWS,)), "seq_lens": ArraySpec((ROWS,)), "slot_tokens": ArraySpec((slots,)),
            "draft_tokens": ArraySpec((ROWS, QUERIES - 1)),
        },
    )  # fmt: skip
    cells = np.arange(slots)
    fixture.write(REQ_TO_TOKEN, cells, cells[::-1])
    fixture.write(FULL_TO_SWA, cells, cells + 100)
    fixture.schedule.synchronize()
    return fixture.forward(PROGRAM, gated=gated)


def serve(backend: JaxBackend, forward: JaxForward) -> list[dict[str, list[int]]]:
    """Two launches of tokens that the host knows, then one that takes all from the device."""
    forward_lane, outputs = backend.lane(FORWARD), []
    for launch, (prefix, tokens) in enumerate([(0, HISTORY[:3]), (3, HISTORY[3:]), (3, None)], start=1):
        row = BatchRow(1, prefix, tokens or (), (0,) * QUERIES, tokens is None, 0.0, 1.0, (0.5,) * QUERIES)
        forward_lane.wait_lane(backend.lane(SCHEDULE))
        forward.load_batch(pack(LAYOUT, [row]), launch)
        forward.replay(launch)
        outputs.append(forward.tail(launch))
    return [{n: a[0].tolist() for n, a in made.result().items()} for made in outputs]


def expected() -> list[dict[str, list[int]]]:
    """The same by hand. The forward commits `from_relay` as the token that was chosen: 0, 0, and 1.

    A 0 stood before, so what followed it is proposed; a 1 did not. The last launch reaches past the context.
    """
    slots = [ROWS * CONTEXT - 1 - CONTEXT - p for p in range(CONTEXT)]  # of row 1
    made = []
    for n, tokens, proposals in ((0, [0, 6, 7], [6, 7]), (3, [0, 6, 8], [6, 8]), (6, [0, 6, 8], [0, 0])):
        places = [slots[p] if p < CONTEXT else 0 for p in range(n, n + QUERIES)]
        made.append({
            "tokens": tokens, "positions": list(range(n, n + QUERIES)), "prefix_lens": n, "out_cache_loc": places,
            "swa_table": [slots[p] + 100 if 0 <= p < CONTEXT else 0 for p in range(n - WINDOW + 1, n + QUERIES)],
            "swa_out_cache_loc": [s + 100 if s else 0 for s in places], "proposals": proposals,
        })  # fmt: skip
    return made
