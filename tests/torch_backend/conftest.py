"""One small world of arrays, and for every op what it sees of it: run alone on any device, or as a decoder's step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from warfence.core.attention import make_attention
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.modes import ForwardMode
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.host.rope import plain
from warfence.parity.small import small_model
from warfence.serve.fixture import Fixture
from warfence.serve.model.program import build, sliding_layers
from warfence_torch.backend import TorchBackend
from warfence_torch.kernels import KERNELS

B, Q, C, W, D, V, K = 3, 4, 12, 5, 16, 17, 3
ROWS, SLOTS, SWA_SLOTS, DRAWS, KEPT = 5, 61, 31, 7, 6
HEADS, KV_HEADS, SIZE, FFN, LAYERS = 4, 2, 4, 24, 2
NORM = {"eps": 1e-5}
SHAPE = {"heads": HEADS, "kv_heads": KV_HEADS, "head_dim": SIZE, "rope": plain(SIZE, 10000.0), **NORM}
LAYER = {
    "attn_norm": (D,), "wq": (D, HEADS * SIZE), "wk": (D, KV_HEADS * SIZE), "wv": (D, KV_HEADS * SIZE),
    "wo": (HEADS * SIZE, D), "mlp_norm": (D,), "w_gate": (D, FFN), "w_up": (D, FFN), "w_down": (FFN, D),
}  # fmt: skip


def make_world() -> dict[str, np.ndarray]:
    """Row 0 of the batch is ordinary; row 1 starts a sequence with two new tokens; row 2 runs over the context's end."""
    rng = np.random.default_rng(4)

    def ints(high: int, *shape: int) -> np.ndarray:
        return rng.integers(0, high, shape).astype(np.int32)

    def floats(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    rows, prefix = np.array([2, 4, 1], np.int32), np.array([5, 0, 10], np.int32)
    table = (1 + rng.permutation(ROWS * C)).reshape(ROWS, C).astype(np.int32)
    swa_table = 1 + rng.permutation(B * (W - 1 + Q)).reshape(B, -1).astype(np.int32)
    world = {
        REQ_TO_TOKEN: table, FULL_TO_SWA: ints(SWA_SLOTS, 1, SLOTS), "req_pool_indices": rows, "page_table": table[rows],
        "prefix_lens": prefix, "extend_lens": np.array([4, 2, 4], np.int32), "from_relay": np.array([1, 0, 1], np.int32),
        "positions": prefix[:, None] + np.arange(Q, dtype=np.int32),
        "out_cache_loc": 1 + np.arange(B * Q, dtype=np.int32).reshape(B, Q),
        "swa_page_table": ints(SWA_SLOTS, B, C), "swa_table": swa_table, "swa_out_cache_loc": swa_table[:, W - 1 :].copy(),
        "input_ids": ints(V, B, Q), "tokens": ints(V, B, Q), "next_tokens": ints(V, B), "proposals": ints(V, B, K),
        "token": ints(V, B), "lens": np.array([1, 2, 4], np.int32), "mix": ints(9, B),
        "temperature": np.array([0, 0.7, 1.3], np.float32), "top_p": np.array([1, 0.8, 1], np.float32),
        "uniform": rng.uniform(size=(B, DRAWS)).astype(np.float32),
        "hidden": floats(B, Q, D), "features": floats(B, Q, D), "draft_hidden": floats(B, Q, D), "logits": 3 * floats(B, Q, V),
        "relay": ints(V, ROWS), "seq_lens": ints(C, ROWS), "draft_tokens": ints(V, ROWS, K), "slot_tokens": ints(3, SLOTS),
        "eagle_hidden": floats(ROWS, KEPT, D), "eagle_tokens": ints(V, ROWS, KEPT), "eagle_lens": 1 + ints(Q, ROWS, 2),
        "kv.0": floats(2, SLOTS, KV_HEADS, SIZE), "embed": floats(V, D), "head": floats(D, V), "norm": floats(D),
        "dflash.mask": floats(D), "dflash.tap.1": floats(D, D) / 4, "dflash.context_norm": floats(D), "dflash.norm": floats(D),
        "eagle.fc": floats(2 * D, D) / 4, "eagle.norm": floats(D),
    }  # fmt: skip
    for j in range(LAYERS):
        world[f"draft_kv.{j}"] = floats(2, SLOTS, KV_HEADS, SIZE)
    for layer in ("layer.0", "dflash.layer.0", "dflash.layer.1", "eagle.layer.0"):
        world |= {f"{layer}.{name}": floats(*shape) / (1 if len(shape) == 1 else 4) for name, shape in LAYER.items()}
    return world


def weights(layer: str) -> tuple[str, ...]:
    return tuple(f"{layer}.{name}" for name in LAYER)


@dataclass(frozen=True)
class Case:
    """One op with its attributes. `sees`: all it may use. `state`: what it may change. `own`: arrays unlike the world's."""

    op: str
    sees: tuple[str, ...]
    state: tuple[str, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, np.ndarray] = field(default_factory=dict)


def make_cases(world: Mapping[str, np.ndarray]) -> dict[str, Case]:
    """By a label; every op of the backend at least once."""
    ids, sampling = ("input_ids", "from_relay", "req_pool_indices", "prefix_lens"), ("temperature", "top_p", "uniform")
    attention = ("hidden", "positions", "prefix_lens")
    kept = ("eagle_hidden", "eagle_tokens", "eagle_lens")
    keep = ("hidden", "tokens", "next_tokens", "req_pool_indices", "prefix_lens", "lens", *kept)
    layer, eagle = (
        {"weights": "layer.0", "pool": "kv.0", **SHAPE},
        {"weights": "eagle.layer.0", "pool": "draft_kv.0", **SHAPE},
    )
    sliding, last = {**layer, "window": W}, {"logits": world["logits"][:, 0].copy()}
    cases = {
        "stage_inputs": Case("stage_inputs", (*ids, "relay")),
        "page_table": Case("page_table", (REQ_TO_TOKEN, "req_pool_indices")),
        "copy_tables": Case("copy_tables", (REQ_TO_TOKEN, FULL_TO_SWA), attrs={"tables": (REQ_TO_TOKEN, FULL_TO_SWA)}),
        "swa_translate": Case("swa_translate", (REQ_TO_TOKEN, FULL_TO_SWA, "req_pool_indices", "prefix_lens", "out_cache_loc"),
                              attrs={"window": W}),
        "embed": Case("embed", ("tokens", "embed")),
        "layer": Case("layer", (*attention, "page_table", "out_cache_loc", "kv.0", *weights("layer.0")), ("kv.0",),
                      {**layer, "window": None}),
        "layer, sliding": Case("layer", (*attention, "swa_table", "swa_out_cache_loc", "kv.0", *weights("layer.0")),
                               ("kv.0",), sliding),
        "logits": Case("logits", ("hidden", "extend_lens", "norm", "head"), attrs=NORM),
        "sample": Case("sample", ("logits", *sampling), attrs={"sampled": True}, own=last),
        "sample, greedy": Case("sample", ("logits", *sampling), attrs={"sampled": False}, own=last),
        "relay": Case("relay", ("next_tokens", "req_pool_indices", "relay"), ("relay",)),
        "mix": Case("mix", ("req_pool_indices", "mix", REQ_TO_TOKEN), attrs={"tables": (REQ_TO_TOKEN,), "column": 2}),
        "resolve": Case("resolve", (*ids, "uniform", "relay", "seq_lens", "draft_tokens"), attrs={"proposals": True}),
        "resolve, no proposals": Case("resolve", (*ids, "uniform", "relay", "seq_lens"), attrs={"proposals": False}),
        "token_locs": Case("token_locs", ("page_table", "positions", "extend_lens")),
        "swa_page_table": Case("swa_page_table", (REQ_TO_TOKEN, FULL_TO_SWA, "req_pool_indices")),
        "swa_window": Case("swa_window", ("swa_page_table", "prefix_lens", "positions", "extend_lens"), attrs={"window": W}),
        "logits_all": Case("logits_all", ("hidden", "norm", "head"), attrs=NORM),
        "verify": Case("verify", ("logits", "tokens", *sampling), attrs={"sampled": True},
                       own={"uniform": world["uniform"][:, :Q].copy()}),
        "commit": Case("commit", ("token", "lens", "req_pool_indices", "prefix_lens", "relay", "seq_lens"),
                       ("relay", "seq_lens"), {"token": "token", "lens": "lens"}),
        "draft_tap": Case("draft_tap", ("hidden", "features", "dflash.tap.1"), attrs={"weight": "dflash.tap.1", "first": False}),
        "draft_tap, first": Case("draft_tap", ("hidden", "dflash.tap.1"), attrs={"weight": "dflash.tap.1", "first": True}),
        "draft_context": Case(
            "draft_context", ("features", "positions", "out_cache_loc", "draft_kv.0", "draft_kv.1", "dflash.context_norm",
                              *(f"dflash.layer.{j}.{w}" for j in range(LAYERS) for w in ("wk", "wv"))),
            ("draft_kv.0", "draft_kv.1"), {"pools": ("draft_kv.0", "draft_kv.1"), **SHAPE}),
        "draft_block": Case("draft_block", ("tokens", "embed", "dflash.mask")),
        "draft_layer": Case("draft_layer", ("draft_hidden", "positions", "prefix_lens", "page_table", "draft_kv.1",
                                            *weights("dflash.layer.1")),
                            attrs={"weights": "dflash.layer.1", "pool": "draft_kv.1", **SHAPE}),
        "draft_propose": Case("draft_propose", ("tokens", "draft_hidden", "dflash.norm", "head"), attrs=NORM),
        "eagle_keep": Case("eagle_keep", keep, kept, {"lens": "lens", "verified": False}),
        "eagle_keep, verified": Case("eagle_keep", keep, kept, {"lens": "lens", "verified": True},
                                     {"next_tokens": world["input_ids"]}),
        "eagle_inputs": Case("eagle_inputs", ("req_pool_indices", *kept, "embed", "eagle.fc"), attrs={"queries": Q}),
        "eagle_propose": Case("eagle_propose", ("hidden", "extend_lens", "prefix_lens", "page_table", "draft_kv.0", "embed",
                                                "head", "eagle.fc", "eagle.norm", *weights("eagle.layer.0")),
                              attrs={"count": K, **eagle}),
        "keep_drafts": Case("keep_drafts", ("proposals", "req_pool_indices", "draft_tokens"), ("draft_tokens",)),
        "ngram_store": Case("ngram_store", ("tokens", "out_cache_loc", "slot_tokens"), ("slot_tokens",)),
        "ngram_lookup": Case("ngram_lookup", ("page_table", "req_pool_indices", "relay", "seq_lens", "slot_tokens"),
                             attrs={"gram": 2, "count": K}),
    }  # fmt: skip
    return cases


WORLD = make_world()
CASES = make_cases(WORLD)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", CASES.values(), ids=CASES.keys())


def run_case(case: Case, changes: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What the op gives, and the state behind it; that it keeps its word is asserted."""
    before = {n: {**WORLD, **case.own, **changes}[n] for n in case.sees}
    env = {n: torch.tensor(a) for n, a in before.items()}
    with torch.inference_mode():
        given = KERNELS[case.op](env, case.attrs)
    for name, value in given.items():
        assert value.dtype in (torch.int32, torch.float32), f"{name} is {value.dtype}"
        assert all(value.untyped_storage().data_ptr() != env[n].untyped_storage().data_ptr() for n in case.state)
    for name in set(case.sees) - set(case.state):
        np.testing.assert_array_equal(env[name].numpy(), before[name], err_msg=f"{case.op} changed {name}")
    return {n: v.numpy() for n, v in given.items()}, {n: env[n].numpy() for n in case.state}


@pytest.fixture
def world() -> dict[str, np.ndarray]:
    return {n: a.copy() for n, a in WORLD.items()}


@pytest.fixture
def run() -> Callable[..., tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """run(label or case, changed arrays, changed attributes...): the op alone on the CPU; what it gives, its state after."""

    def run(case: str | Case, changes: Mapping[str, np.ndarray] | None = None, **attrs: Any) -> Any:
        found = CASES[case] if isinstance(case, str) else case
        return run_case(replace(found, attrs={**found.attrs, **attrs}), changes or {})

    return run


@pytest.fixture(scope="session")
def decode() -> Callable[..., list[tuple[dict[str, np.ndarray], float]]]:
    """decode(device, breaks, marker_after): four steps of a small decoder; each step's results and device_s."""
    small = small_model()

    def decode(device: str, breaks: tuple[str, ...] = (), marker_after: str | None = None) -> Any:
        config, context = small.config, 16
        attention = make_attention("captured", sliding_layers(config))
        program = replace(build(config, attention, ForwardMode.DECODE, BatchLayout(2, 1), sampled=False), breaks=breaks)
        slots, steps = 1 + 2 * context, []
        with Fixture.of_model(
            TorchBackend(device), config, small.weights, context=context, rows=3, slots=slots
        ) as fixture:
            fixture.fill_rows()
            fixture.lane.wait_lane(fixture.schedule)
            forward = fixture.forward(program, marker_after)
            for step in range(4):
                places = {r: ((r - 1) * context + 1 + step,) for r in (1, 2)}
                rows = [BatchRow(r, step, (7,), places[r], step > 0, 0.0, 1.0, (0.5,)) for r in (1, 2)]
                outputs = fixture.launch(forward, pack(program.layout, rows))
                steps.append((dict(outputs.result()), outputs.device_s))
        return steps

    return decode


@pytest.fixture
def cases() -> dict[str, Case]:
    return CASES
