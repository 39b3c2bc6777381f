"""How long a launch took: `Outputs.device_s`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest

from warfence.core.batch import BatchLayout, pack
from warfence.core.errors import StageError
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage
from warfence.serve.fixture import Fixture
from warfence_jax import kernels
from warfence_jax.backend import JaxBackend
from warfence_jax.clock import Clock, Span

from .conftest import MakeRig, Rig


class Watch:
    """The time that the backend's clock reads, moved on by hand: nothing here depends on how fast a machine is."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


WATCH = Watch()
NAP_S = 1.0


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    monkeypatch.setattr("warfence_jax.clock.time", WATCH)
    WATCH.now = 0.0
    return WATCH


def nap(env: kernels.Env, attrs: kernels.Attrs) -> dict[str, jax.Array]:
    """Takes NAP_S of the watch to run, or fails."""

    def sleep(ids: jax.Array) -> jax.Array:
        if attrs["fails"]:
            raise ArithmeticError("no sleep")
        WATCH.now += NAP_S
        return ids

    ids = env["input_ids"]
    return {"slept": jax.pure_callback(sleep, jax.ShapeDtypeStruct(ids.shape, ids.dtype), ids)}


class Naps:
    """Launches of a forward that naps, or fails, on a backend of its own."""

    def __init__(self) -> None:
        self.backend = JaxBackend()
        fixture = Fixture(self.backend, {})
        self._forwards = {fails: fixture.forward(self._program(fails)) for fails in (False, True)}

    @staticmethod
    def _program(fails: bool) -> ForwardProgram:
        stage = Stage("nap", Region.REPLAY, "nap", takes=("input_ids",), gives=("slept",), attrs={"fails": fails})
        return ForwardProgram("p", ForwardMode.DECODE, BatchLayout(1, 1), (stage,), outputs=("slept",))

    def __call__(self, number: int, *, fails: bool = False, finished: bool = True):
        forward = self._forwards[fails]
        forward.load_batch(pack(forward.program.layout, []), number)
        if finished:
            forward.replay(number)
            return forward.tail(number)


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch, watch: Watch) -> Iterator[Naps]:
    monkeypatch.setitem(kernels.KERNELS, "nap", nap)
    made = Naps()
    yield made
    made.backend.close()


def test_launches_that_queue_share_the_time_without_a_gap(launch: Naps) -> None:
    outputs = [launch(n) for n in (1, 2, 3)]
    assert outputs[0].device_s is None  # nobody asked for the results yet
    for made in outputs:
        made.result()
    assert sum(made.device_s for made in outputs) == 3 * NAP_S


def test_the_time_between_launches_is_nobodys(launch: Naps, watch: Watch) -> None:
    outputs = launch(1)
    outputs.result()
    assert outputs.device_s == NAP_S
    watch.now += 4 * NAP_S
    outputs = launch(2)
    outputs.result()
    assert outputs.device_s == NAP_S


def test_a_launch_that_failed_has_no_time(launch: Naps) -> None:
    outputs = launch(1, fails=True)
    with pytest.raises(StageError):
        outputs.result()
    assert outputs.device_s is None


@pytest.mark.slow
@pytest.mark.parametrize("threaded", [False, True])
def test_every_launch_of_a_model_has_a_time(make_rig: MakeRig, threaded: bool) -> None:
    rig = make_rig((False,), threaded=threaded)
    forward = rig.compile()
    began = time.perf_counter()
    outputs = [rig.launch(forward) for _ in range(8)]
    for made in outputs:
        made.result()
    assert all(made.device_s > 0 for made in outputs)
    assert sum(made.device_s for made in outputs) <= time.perf_counter() - began


@pytest.mark.slow
def test_a_gate_that_holds_the_launch_counts(rig: Rig, watch: Watch) -> None:
    forward = rig.compile(gated=True)
    forward.gates.close("sample")
    outputs = rig.launch(forward)
    forward.gates.await_reached("sample")
    watch.now += NAP_S
    forward.gates.open("sample")
    outputs.result()
    assert outputs.device_s == NAP_S


def test_closing_ends_the_thread_and_lets_nobody_wait(launch: Naps) -> None:
    before = set(threading.enumerate())
    outputs = launch(1)
    launch.backend.close()
    launch.backend.close()
    outputs.result()
    assert outputs.device_s == NAP_S
    assert set(threading.enumerate()) <= before
    clock, span = Clock(), Span()
    clock.close()
    clock.watch(span, jnp.zeros(()))
    assert span.seconds() is None


def test_a_launch_that_was_given_up_is_not_waited_for(launch: Naps) -> None:
    launch(1, finished=False)
    outputs = launch(2)
    outputs.result()
    assert outputs.device_s == NAP_S
