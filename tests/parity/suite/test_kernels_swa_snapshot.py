"""The snapshot of sliding write locations: used whatever the live map says, never short, sliced if long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.parity.suite.by_hand import f32, i32
from tests.parity.suite.paged import shared_small_model
from warfence.core.attention import make_attention
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.errors import InputError, StageError, WarfenceError
from warfence.core.modes import ForwardMode
from warfence.core.program import FULL_TO_SWA, ForwardProgram
from warfence.host.rope import plain
from warfence.host.stage_calls import StageEnv, bind, for_call
from warfence.parity.kernels import KERNELS
from warfence.parity.small import BLOCK, SmallModel, small_drafting
from warfence.parity.strict.backend import StrictBackend
from warfence.serve.fixture import Fixture
from warfence.serve.model.program import build, sliding_layers, state_specs

CONTEXT, SLOTS, CHUNK, WINDOW = 32, 64, 6, 5
ATTRS = {"weights": "w", "pool": "kv", "heads": 4, "kv_heads": 2, "head_dim": 4, "rope": plain(4, 1e4), "eps": 1e-5}
SHAPES = {
    "attn_norm": (8,), "wq": (8, 16), "wk": (8, 8), "wv": (8, 8), "wo": (16, 8), "mlp_norm": (8,), "w_gate": (8, 12),
    "w_up": (8, 12), "w_down": (12, 8),
}  # fmt: skip
KINDS = pytest.mark.parametrize("window", [None, WINDOW], ids=["full", "sliding"])


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return shared_small_model()


# -- one layer: what its snapshot may be


def layer(window: int | None, change: Mapping[str, Any] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(hidden, pool afterwards) of two rows of three tokens, of the kind of layer."""
    rng, q = np.random.default_rng(0), 3
    out, columns = ("out_cache_loc", 10) if window is None else ("swa_out_cache_loc", WINDOW - 1 + q)
    table = rng.permutation(np.arange(1, 1 + 2 * columns)).astype(np.int32).reshape(2, columns)
    prefix = i32([4, 5])
    at = prefix[:, None] + i32(range(q)) if window is None else i32([range(WINDOW - 1, WINDOW - 1 + q)] * 2)
    env = {
        "hidden": f32(rng.normal(0, 1, (2, q, 8))), "positions": prefix[:, None] + i32(range(q)), "prefix_lens": prefix,
        "page_table" if window is None else "swa_table": table, out: np.take_along_axis(table, at, axis=1),
        "kv": f32(rng.normal(0, 1, (2, 40, 2, 4))),
    }  # fmt: skip
    env |= {f"w.{n}": f32(rng.normal(0, 0.4, s)) for n, s in SHAPES.items()}
    for name, value in (change or {}).items():
        if value is None:
            del env[out]
        else:
            env[name] = value(env[name])
    before = env["kv"].copy()
    try:
        hidden = KERNELS["layer"](StageEnv("layer.7", env), ATTRS | {"window": window})["hidden"]
    except WarfenceError as error:
        assert np.array_equal(env["kv"], before), "nothing was written before the error"
        raise error
    assert not np.array_equal(env["kv"], before)
    return hidden, env["kv"]


def name_of(window: int | None) -> str:
    return "out_cache_loc" if window is None else "swa_out_cache_loc"


@KINDS
def test_a_longer_snapshot_is_sliced_to_the_call(window: int | None) -> None:
    longer = layer(window, {name_of(window): lambda out: np.concatenate([out, out + 11], axis=1)})
    for seen, expected in zip(longer, layer(window), strict=True):
        assert np.array_equal(seen, expected)


@KINDS
def test_a_shorter_snapshot_is_an_error_before_any_write(window: int | None) -> None:
    with pytest.raises(WarfenceError, match=rf"snapshot '{name_of(window)}' holds 2 write locations a row and the call "
                                            "writes 3.*never fall back to the live table"):  # fmt: skip
        layer(window, {name_of(window): lambda out: out[:, :2]})


@KINDS
def test_a_missing_snapshot_is_an_error_before_any_write(window: int | None) -> None:
    with pytest.raises(WarfenceError, match=rf"stage 'layer\.7' uses '{name_of(window)}', which it does not declare"):
        layer(window, {"missing": None})


def test_a_program_whose_layers_snapshot_nobody_makes_is_refused(small: SmallModel) -> None:
    program = build(small.config, make_attention("captured", sliding_layers(small.config)), ForwardMode.DECODE,
                    BatchLayout(1, 1), sampled=False)  # fmt: skip
    without = tuple(s for s in program.stages if s.name != "swa_translate")
    message = r"stage 'layer\.0' takes \['swa_table', 'swa_out_cache_loc'\], which nothing before it gives"
    with pytest.raises(InputError, match=message):
        replace(program, stages=without)


@pytest.mark.parametrize(("have", "need", "used"), [(4, 4, 4), (9, 4, 4), (1, 0, 0)])
def test_a_call_uses_as_many_locations_as_it_writes(have: int, need: int, used: int) -> None:
    assert for_call("swa_out_cache_loc", have, need) == used


# -- a whole forward: the live map poisoned behind the place where the metadata was made


def forward_of(
    small: SmallModel, mode: ForwardMode, attention: str, rows: int = 1, short: int = 0
) -> tuple[ForwardProgram, BatchRow]:
    """rows: of the captured shape, all but one of them padding. short: new tokens that the row has fewer than the shape."""
    speculates = mode is ForwardMode.TARGET_VERIFY
    drafting = small_drafting(small.config, "ngram") if speculates else None
    layout = (
        BatchLayout(rows, BLOCK, 2 * BLOCK)
        if speculates
        else BatchLayout(rows, CHUNK if mode is ForwardMode.EXTEND else 1)
    )
    program = build(small.config, make_attention(attention, sliding_layers(small.config)), mode, layout, sampled=False,
                    drafting=drafting)  # fmt: skip
    new = layout.queries - short
    return program, BatchRow(1, 0, tuple(range(5, 5 + new)), tuple(range(1, 1 + new)), False, 0.0, 1.0, ())


def run_poisoned(
    small: SmallModel,
    mode: ForwardMode,
    attention: str,
    gate: str | None,
    rows: int = 1,
    short: int = 0,
    **kernels: Any,
) -> np.ndarray:
    """next_tokens and margins of one launch; at the gate, if there is one, the live map of its slots is overwritten."""
    program, row = forward_of(small, mode, attention, rows, short)
    drafting = small_drafting(small.config, "ngram")
    fixture = Fixture.of_model(
        StrictBackend(kernels={**KERNELS, **kernels}), small.config, small.weights, context=CONTEXT, rows=2, slots=SLOTS,
        state=state_specs(small.config, 2, SLOTS, SLOTS, drafting, CHUNK),
    )  # fmt: skip
    fixture.fill_rows()
    forward, every = fixture.forward(program, gated=True), np.arange(1, CONTEXT + 1)
    fixture.lane.wait_lane(fixture.schedule)
    if gate is not None:
        forward.gates.close(gate)
    outputs = fixture.launch(forward, pack(program.layout, [row]))
    if gate is not None:
        forward.gates.await_reached(gate)
        fixture.write(FULL_TO_SWA, every, np.full_like(every, 3))
        assert fixture.schedule.settle(0.0), "nothing holds the write back"
        forward.gates.open_all()
    result = outputs.result()
    return np.concatenate([np.ravel(result["next_tokens"][0]), np.ravel(result["margin"][0])])


MODES = pytest.mark.parametrize("mode", [ForwardMode.EXTEND, ForwardMode.TARGET_VERIFY])


@MODES
@pytest.mark.parametrize("attention", ["captured", "snapshot"])
def test_the_live_map_may_change_as_soon_as_the_snapshot_is_made(
    small: SmallModel, mode: ForwardMode, attention: str
) -> None:
    expected = run_poisoned(small, mode, attention, None)
    assert not np.array_equal(run_poisoned(small, mode, attention, "start"), expected), "the map is read"
    assert np.array_equal(run_poisoned(small, mode, attention, "swa_translate"), expected)


@pytest.mark.parametrize("attention", ["captured", "snapshot", "hybrid"])
@pytest.mark.parametrize(("rows", "short"), [(3, 0), (1, 2), (3, 2)], ids=["rows", "tokens", "both"])
def test_a_replay_that_is_padded_uses_the_real_part_of_its_snapshot(
    small: SmallModel, attention: str, rows: int, short: int
) -> None:
    """The snapshot is made with the geometry of the captured shape: rows and locations beyond the batch are padding, which
    writes to the reserved slot, and the batch is as it is in the shape that fits."""
    exact = run_poisoned(small, ForwardMode.EXTEND, attention, None, short=short)
    padded = run_poisoned(small, ForwardMode.EXTEND, attention, "swa_translate", rows=rows, short=short)
    assert np.array_equal(padded, exact)
    assert not np.array_equal(
        run_poisoned(small, ForwardMode.EXTEND, attention, "start", rows=rows, short=short), exact
    )


def test_a_padded_replay_that_is_short_of_its_geometry_is_an_error(small: SmallModel) -> None:
    def short(env: Any, attrs: Any) -> dict[str, np.ndarray]:
        """As long as the batch, where the replay writes as many as its shape."""
        given = KERNELS["swa_translate"](env, attrs)
        return given | {"swa_out_cache_loc": given["swa_out_cache_loc"][:, : CHUNK - 2].copy()}

    with pytest.raises(
        StageError, match=r"holds 4 write locations a row and the call writes 6.*never fall back to the live"
    ):
        run_poisoned(small, ForwardMode.EXTEND, "captured", None, rows=3, short=2, swa_translate=short)


@MODES
@pytest.mark.parametrize("attention", ["live", "rereading"])
def test_a_look_up_of_the_live_map_in_each_layer_reads_what_was_written_since(
    small: SmallModel, mode: ForwardMode, attention: str
) -> None:
    """The race that the snapshot closes: released where the first layer's metadata is made, later layers are wrong."""
    expected = run_poisoned(small, mode, attention, None)
    assert not np.array_equal(run_poisoned(small, mode, attention, "swa_translate.0"), expected)
    last = f"swa_translate.{sliding_layers(small.config)[-1]}"
    assert np.array_equal(run_poisoned(small, mode, attention, last), expected), "behind the last look-up all is well"


def test_a_backend_says_which_stage_met_the_short_snapshot(small: SmallModel) -> None:
    def short(env: Any, attrs: Any) -> dict[str, np.ndarray]:
        given = KERNELS["swa_translate"](env, attrs)
        return given | {"swa_out_cache_loc": given["swa_out_cache_loc"][:, :-1].copy()}

    with pytest.raises(
        StageError, match=r"launch 1, stage 'layer\.0': WarfenceError: snapshot 'swa_out_cache_loc' holds 5"
    ):
        run_poisoned(small, ForwardMode.EXTEND, "captured", None, swa_translate=short)


def test_bind_hands_no_layer_the_live_map(small: SmallModel) -> None:
    """What is not declared cannot be read: a layer that looked the map up anyway would fail with its own name."""
    program, _ = forward_of(small, ForwardMode.EXTEND, "captured")
    stage = program.stages[program.index("layer.0")]
    reading = {"layer": lambda env, attrs: {"hidden": env[FULL_TO_SWA]}}
    fixed = {n: np.zeros(1, np.float32) for n in (*stage.state, *stage.params)} | {FULL_TO_SWA: i32([[1]])}
    with pytest.raises(WarfenceError, match=r"stage 'layer\.0' uses 'full_to_swa', which it does not declare"):
        bind(stage, fixed, reading)({name: np.zeros(1, np.float32) for name in stage.takes})
