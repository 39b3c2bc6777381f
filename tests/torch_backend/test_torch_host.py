"""What is particular to torch on the CPU: recorded forwards, failures in a stage, options of the backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from warfence.core.backend import FORWARD, SCHEDULE, ArraySpec
from warfence.core.batch import BatchLayout, BatchRow, pack
from warfence.core.errors import InputError, StageError, WarfenceError
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage
from warfence.parity.small import SIZES, make_engine, small_model
from warfence.serve.fixture import Fixture
from warfence_torch import kernels
from warfence_torch.backend import TorchBackend

LAYOUT = BatchLayout(1, 1)
BATCH = pack(LAYOUT, [BatchRow(1, 0, (0,), (0,), False, 0.0, 1.0, ())])


def mix(name: str, region: Region, reads: tuple[str, ...] = (), **more: Any) -> Stage:
    attrs = {"tables": reads, "column": 0, **more}
    return Stage(name, region, "mix", reads=reads, takes=("req_pool_indices",), gives=("mix",), attrs=attrs)


@pytest.fixture
def backend():
    with Fixture(TorchBackend(), {"t": ArraySpec((4, 2))}) as fixture:
        yield fixture.backend


def program(*stages: Stage) -> ForwardProgram:
    return ForwardProgram("p", ForwardMode.DECODE, LAYOUT, stages, ("mix",))


def test_a_failing_stage_reaches_the_caller_with_launch_and_stage(backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(env: Any, attrs: Any) -> dict[str, torch.Tensor]:
        raise RuntimeError("kernel went wrong")

    monkeypatch.setitem(kernels.KERNELS, "fail", fail)
    bad = Stage("layer.3", Region.REPLAY, "fail", takes=("mix",), gives=("more",))
    forward = backend.compile(program(mix("a", Region.LOAD_BATCH), bad, mix("c", Region.TAIL)), gated=True)
    forward.gates.close("layer.3")
    schedule = backend.lane(SCHEDULE)
    forward.load_batch(BATCH, 5)
    forward.replay(5)
    outputs = forward.tail(5)
    schedule.wait_lane(backend.lane(FORWARD))
    with pytest.raises(StageError, match=r"launch 5, stage 'layer\.3': RuntimeError: kernel went wrong") as caught:
        outputs.result()
    assert (caught.value.launch, caught.value.stage) == (5, "layer.3")
    schedule.synchronize()  # the lane that waited for the failed one was let go
    with pytest.raises(StageError):
        forward.load_batch(BATCH, 6)


def test_an_undeclared_read_names_stage_and_table(backend) -> None:
    sneaky = mix("sneaky", Region.LOAD_BATCH)
    sneaky.attrs["tables"] = ("t",)  # its kernel reads a table that the stage does not declare
    forward = backend.compile(program(sneaky, mix("b", Region.REPLAY)))
    forward.load_batch(BATCH, 1)
    forward.replay(1)
    with pytest.raises(StageError, match="stage 'sneaky' uses 't', which it does not declare; it declares: req_pool"):
        forward.tail(1).result()


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (Stage("a", Region.REPLAY, "fancy"), "stage 'a' has the op 'fancy'; this backend knows: stage_inputs"),
        (mix("a", Region.REPLAY, ("ghost",)), r"stage 'a' needs \['ghost'\], which were not made"),
    ],
)
def test_what_cannot_be_compiled_is_named(backend, stage: Stage, message: str) -> None:
    with pytest.raises(InputError, match=message):
        backend.compile(program(stage))


def test_a_marker_stage_that_does_not_exist_gets_the_nearest_names(backend) -> None:
    with pytest.raises(InputError, match="no stage 'reed'; nearest: read"):
        backend.compile(program(mix("read", Region.REPLAY)), marker_after="reed")


def test_a_device_that_is_absent_or_unknown() -> None:
    with pytest.raises(InputError, match="unknown device 'tpu'; choose one of: cpu, cuda"):
        TorchBackend("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no CUDA device here"):
            TorchBackend("cuda")


def test_without_external_events_no_marker_is_made_and_it_is_said() -> None:
    backend = TorchBackend(external_markers=False)
    assert backend.make_read_done_marker() is None
    assert not backend.capabilities.external_markers
    assert backend.capabilities.reasons["external_markers"]
    with Fixture(backend, {"t": ArraySpec((4, 2))}) as fixture:
        assert fixture.forward(program(mix("a", Region.REPLAY, ("t",))), "a").marker is None


def test_an_unknown_table_is_named(backend) -> None:
    with pytest.raises(InputError, match="no table 'u'; tables: t"):
        backend._tables.write(backend.lane(SCHEDULE), "u", np.array([0], np.int32), np.array([1], np.int32))


def test_the_pools_are_as_large_as_the_configuration_says() -> None:
    small, backend = small_model(), TorchBackend()
    with make_engine(small, backend, attention="captured") as engine:
        limits, config, report = engine.limits, small.config, backend.report()
    row_bytes = 2 * config.kv_heads * config.head_dim * 4
    kv = sum(row_bytes * (limits.swa_slots if s else limits.slots) for s in config.sliding)
    assert report["state_bytes"] == kv + 4 * limits.rows
    assert report["tables_bytes"] == 4 * (limits.rows * limits.context + limits.slots)
    assert report["params_bytes"] == sum(w.nbytes for w in small.weights.values())
    assert limits.slots == SIZES["slots"] + 1


def test_weights_are_copied_not_aliased() -> None:
    """Law 12: a tensor over numpy memory would follow later writes to it."""
    weights = np.ones((2, 2), np.float32)
    with Fixture(TorchBackend(), {"t": ArraySpec((1, 1))}, {"w": weights}) as fixture:
        weights[:] = 7
        assert fixture.backend._params["w"].tolist() == [[1, 1], [1, 1]]


def test_undeclared_gives_are_refused(backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernels.KERNELS, "odd", lambda env, attrs: {"other": torch.zeros(1)})
    forward = backend.compile(program(Stage("odd", Region.LOAD_BATCH, "odd", gives=("mix",)), mix("b", Region.REPLAY)))
    forward.load_batch(BATCH, 1)
    with pytest.raises(WarfenceError, match=r"stage 'odd' gave \['other'\] but declares \['mix'\]"):
        backend.lane(FORWARD).synchronize()
