"""The numpy kernels: each against the rule that it follows, and `bind`, which shows a stage only what it declares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from warfence.core.attention import make_attention
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.errors import InputError, WarfenceError
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import Stage
from warfence.host.stage_calls import bind
from warfence.parity.kernels import KERNELS
from warfence.parity.small import SmallModel, small_model
from warfence.serve.model.program import build, sliding_layers, state_specs
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.sampling import SamplingParams, choose


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return small_model()


def test_every_op_of_the_programs_is_here(small: SmallModel) -> None:
    for kind in ("captured", "live"):
        attention = make_attention(kind, sliding_layers(small.config))
        program = build(small.config, attention, ForwardMode.DECODE, BatchLayout(1, 1), sampled=True)
        assert {stage.op for stage in program.stages} <= set(KERNELS)


@pytest.mark.parametrize("seed", range(5))
def test_sample_follows_the_rule_row_by_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = 16
    env = {
        "logits": rng.normal(0, 2, (rows, 97)).astype(np.float32),
        "temperature": rng.choice([0.0, 0.3, 1.0], rows).astype(np.float32),
        "top_p": rng.choice([0.1, 0.9, 1.0], rows).astype(np.float32),
        "uniform": rng.random((rows, 1), np.float32),
    }
    given = KERNELS["sample"](env, {"sampled": True})
    for i in range(rows):
        params = SamplingParams(float(env["temperature"][i]), float(env["top_p"][i]))
        token, margin = choose(env["logits"][i], params, float(env["uniform"][i, 0]))
        assert given["next_tokens"][i] == token
        assert given["margin"][i] == pytest.approx(margin, abs=1e-6)
    greedy = KERNELS["sample"](env, {"sampled": False})["next_tokens"]
    assert greedy.tolist() == env["logits"].argmax(-1).tolist()
    assert greedy.dtype == given["next_tokens"].dtype == np.int32


def test_a_prompt_in_two_chunks_has_the_logits_of_the_reference(small: SmallModel) -> None:
    config, ids = small.config, [5, 9, 2, 7, 1, 8, 3, 4, 6, 11, 12]
    layout = BatchLayout(2, 8)  # with a padding row
    attention = make_attention("captured", sliding_layers(config))
    program = build(config, attention, ForwardMode.EXTEND, layout, sampled=False)
    slots = np.random.default_rng(0).permutation(np.arange(1, 30, dtype=np.int32))
    fixed = dict(small.weights) | {n: np.zeros(s.shape, s.dtype) for n, s in state_specs(config, 3, 30, 30).items()}
    fixed |= {"req_to_token": np.zeros((3, 96), np.int32), "full_to_swa": np.zeros((1, 30), np.int32)}
    fixed["req_to_token"][2, : len(ids)] = slots[: len(ids)]
    fixed["full_to_swa"][0, slots] = slots[::-1]
    before = {n: a.copy() for n, a in fixed.items()}
    expected = ReferenceModel(config, small.weights).logits(ids)
    for start in range(0, len(ids), 8):
        part = tuple(ids[start : start + 8])
        own = tuple(int(s) for s in slots[start : start + len(part)])
        batch = pack(layout, [BatchRow(2, start, part, own, False, 0.0, 1.0, ())])
        workspace = {name: batch.view(name) for name in layout.fields}
        for stage in program.stages:
            given = bind(stage, fixed, KERNELS)(workspace)
            assert all(not np.shares_memory(v, a) for v in given.values() for a in fixed.values())
        np.testing.assert_allclose(workspace["logits"][0], expected[start + len(part) - 1], atol=1e-5)
        assert {a.dtype for a in workspace.values()} == {np.dtype("int32"), np.dtype("float32")}
        assert fixed["relay"][2] == workspace["next_tokens"][0]
    state = set(state_specs(config, 3, 30, 30))
    assert all(np.array_equal(fixed[n], before[n]) for n in fixed if n not in state), "only state is updated"


def test_the_relay_stands_in_for_a_token_that_the_host_does_not_know() -> None:
    layout = BatchLayout(2, 1)
    rows = [BatchRow(1, 4, (), (7,), True, 0.0, 1.0, ()), BatchRow(2, 0, (9,), (8,), False, 0.0, 1.0, ())]
    batch = pack(layout, rows)
    env = {name: batch.view(name) for name in layout.fields} | {"relay": np.array([0, 42, 43], np.int32)}
    given = KERNELS["stage_inputs"](env, {})
    assert given["tokens"].tolist() == [[42], [9]]
    assert given["positions"].tolist() == [[4], [0]]
    assert batch.view("input_ids").tolist() == [[0], [9]], "the batch is not written"


def test_bind_says_what_is_wrong_with_a_stage() -> None:
    stage = Stage("look", Region.REPLAY, "page_table", reads=("req_to_token",), takes=("req_pool_indices",),
                  gives=("page_table",))  # fmt: skip
    fixed = {"req_to_token": np.zeros((2, 4), np.int32), "other": np.zeros(1, np.int32)}
    workspace = {"req_pool_indices": np.array([1], np.int32)}
    assert bind(stage, fixed, KERNELS)(workspace)["page_table"] is workspace["page_table"]
    with pytest.raises(InputError, match=r"stage 'look' needs \['req_to_token'\].*call tables\(\) and load\(\) first"):
        bind(stage, {}, KERNELS)
    with pytest.raises(InputError, match="stage 'look' has the op 'magic'; this backend knows: stage_inputs, "):
        bind(replace(stage, op="magic"), fixed, KERNELS)
    with pytest.raises(
        WarfenceError, match="'look' uses 'req_to_token', which it does not declare; it declares: other"
    ):
        bind(replace(stage, reads=("other",)), fixed, KERNELS)(workspace)
    with pytest.raises(WarfenceError, match=r"stage 'look' gave \['page_table'\] but declares \['table'\]"):
        bind(replace(stage, gives=("table",)), fixed, KERNELS)(workspace)
