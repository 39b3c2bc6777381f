from __future__ import annotations

import numpy as np
import pytest

from warfence.core.batch import BatchLayout, pack
from warfence.core.errors import FenceError, InputError, StageError
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage
from warfence_jax import kernels
from warfence_jax.compiler import aliased_arguments

from .conftest import CONTEXT, MakeRig, Rig, check, slot


@pytest.mark.slow
def test_prefill_and_decode_agree_with_the_reference(make_rig: MakeRig) -> None:
    rig = make_rig((False, True, False, True))
    tokens = check(rig, "live")
    relay = rig.backend.state_to_host("relay")
    assert relay[1:].tolist() == [tokens[1][-1], tokens[2][-1]]
    keys = rig.backend.state_to_host("kv.0")[0]
    assert keys[slot(1, 0)].any()
    assert not keys[slot(2, CONTEXT - 1)].any()


@pytest.mark.slow
def test_tables_that_are_read_at_the_head_of_the_replay_give_the_same_tokens(rig: Rig) -> None:
    check(rig, "captured")


@pytest.mark.slow
def test_each_executable_takes_over_the_memory_of_all_its_state(rig: Rig) -> None:
    for executable in rig.compile().executables:
        segment = executable.segment
        first = len(segment.tables) + len(executable.takes)
        assert aliased_arguments(executable.compiled) == set(range(first, first + len(segment.state))), segment.label
    report = rig.backend.report()
    assert report["params_bytes"] == sum(w.nbytes for w in rig.weights.values())
    assert report["state_bytes"] == sum(a.nbytes for a in rig.backend.state.values())
    assert report["tables_bytes"] == 4 * (3 * CONTEXT + 2 * CONTEXT + 1)


@pytest.mark.slow
def test_the_marker_hands_out_the_ticket_of_the_last_launch_only(rig: Rig) -> None:
    decode = rig.compile("live")
    with pytest.raises(FenceError, match="ticket of launch 1 asked for, last issued launch is None"):
        decode.marker.ticket(1)
    one = rig.launch(decode).launch
    first = decode.marker.ticket(one)
    rig.schedule.wait(first)
    two = rig.launch(decode).launch
    with pytest.raises(FenceError, match=f"ticket of launch {one} is stale: .* the record of launch {two}"):
        rig.schedule.wait(first)
    with pytest.raises(FenceError, match=f"ticket of launch {one} asked for, last issued launch is {two}"):
        decode.marker.ticket(one)
    rig.schedule.wait(decode.marker.ticket(two))


@pytest.mark.slow
def test_a_launch_out_of_order_or_of_another_shape_is_refused(rig: Rig) -> None:
    decode = rig.compile()
    with pytest.raises(FenceError, match="launch 905 goes on without its own load_batch"):
        decode.replay(905)
    decode.load_batch(rig.batch(decode, [(1, 0, (3,), False)]), 906)
    with pytest.raises(FenceError, match="launch 907 goes on without its own load_batch"):
        decode.tail(907)
    other = pack(BatchLayout(2, 1), [])
    with pytest.raises(InputError, match=r"launch 908: .* takes 1 rows of 1 queries, the batch has 2 of 1"):
        decode.load_batch(other, 908)


def one_stage(stage: Stage) -> ForwardProgram:
    return ForwardProgram("p", ForwardMode.DECODE, BatchLayout(1, 1), (stage,), outputs=stage.gives)


def test_a_stage_that_cannot_be_compiled_is_named(rig: Rig) -> None:
    undeclared = Stage("sneaky", Region.REPLAY, "embed", takes=("input_ids",), gives=("hidden",), params=("embed",))
    with pytest.raises(
        StageError, match=r"launch 0, stage 'sneaky': WarfenceError: .* uses 'tokens', which it does not"
    ):
        rig.backend.compile(one_stage(undeclared))
    missing = Stage("hungry", Region.REPLAY, "embed", gives=("hidden",), params=("nothing",))
    with pytest.raises(InputError, match=r"segment 'hungry' needs the params \['nothing'\]; made were: embed, "):
        rig.backend.compile(one_stage(missing))
    with pytest.raises(InputError, match="the marker's stage 'relay' is not a replay stage"):
        rig.backend.compile(rig.compile().program, marker_after="relay")


def test_a_stage_that_fails_at_run_time_is_named_with_its_launch(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax
    from jax.experimental import io_callback

    def burst(ids: object) -> object:
        raise ArithmeticError("too many tokens")

    def bad(env: kernels.Env, attrs: kernels.Attrs) -> dict[str, jax.Array]:
        ids = env["input_ids"]
        return {"next_tokens": io_callback(burst, jax.ShapeDtypeStruct(ids.shape, ids.dtype), ids)}

    monkeypatch.setitem(kernels.KERNELS, "bad", bad)
    rig = make_rig((False,))
    stage = Stage("boom", Region.REPLAY, "bad", takes=("input_ids",), gives=("next_tokens",))
    forward = rig.backend.compile(one_stage(stage))
    with pytest.raises(StageError, match=r"(?s)launch 1, stage 'boom': .*too many tokens"):
        np.testing.assert_array_equal(rig.launch(forward).result()["next_tokens"], 0)
    rig.backend.close()
