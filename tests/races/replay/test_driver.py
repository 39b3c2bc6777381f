"""The driver against machines that are not what they should be: replays can fail."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from warfence.core.errors import FenceError, InputError
from warfence.races.replay import driver
from warfence.races.replay.host_cells import CellMachines, Library
from warfence.races.replay.host_machine import HostMachine
from warfence.races.replay.machine import Machine
from warfence.races.replay.registry import machines
from warfence.races.replay.verdicts import replay, replay_fixed
from warfence.races.scenarios.library import find
from warfence.races.scenarios.operations import Memories
from warfence.races.scenarios.steps import Trace

NUMPY = CellMachines("numpy", Library(partial(np.zeros, dtype=np.int32)))


class Spoilt(CellMachines):
    """Machines with some methods replaced."""

    def __init__(self, **methods: object) -> None:
        super().__init__("spoilt", NUMPY.library)
        self._methods = methods

    def make(self, trace: Trace, memories: Memories) -> Machine:
        machine = super().make(trace, memories)
        for name, method in self._methods.items():
            setattr(machine, name, method)
        return machine


def test_a_machine_that_forgets_waits_is_found() -> None:
    replayed = replay(find("coarse"), Spoilt(wait_lane=lambda lane, other: None))
    assert not replayed.agrees
    assert replayed.verdict == "bad"


def test_a_machine_that_waits_for_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = HostMachine.launch

    def behind_all(self: HostMachine, lane: str, executables: object) -> None:
        for other in self._lanes:
            if other != lane:
                self.wait_lane(lane, other)
        launch(self, lane, executables)

    monkeypatch.setattr(HostMachine, "launch", behind_all)
    replayed = replay(find("no-fence"), NUMPY)
    assert (replayed.verdict, replayed.agrees) == ("held", False)


def test_a_call_that_fails_is_no_refusal_that_was_expected() -> None:
    def fail(lane: str, event: str, launch: int) -> None:
        raise RuntimeError("out of events")

    replayed = replay(find("in-graph"), Spoilt(wait=fail))
    assert (replayed.verdict, replayed.agrees) == ("error", False)
    assert "out of events" in replayed.shown[0].said


def test_the_watchdog_ends_a_run_that_never_comes_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "WATCHDOG_S", 0.05)
    with pytest.raises(FenceError, match=r"did not come to rest within 0.05 s"):
        replay(find("in-graph"), Spoilt(settle=lambda: "busy"))


def test_what_is_not_wrong_has_no_fixed_twin() -> None:
    with pytest.raises(
        InputError, match="scenario 'coarse' is ok: there is no race in it to repair, and its file names no"
    ):
        replay_fixed(find("coarse"), NUMPY)


def test_what_no_wait_repairs_and_names_no_twin_says_both() -> None:
    alone = replace(find("stale-static"), fixed_by="")
    with pytest.raises(
        InputError, match="scenario 'stale-static' is bad: no added wait repairs it, and its file names no"
    ):
        replay_fixed(alone, NUMPY)


def test_a_race_in_a_later_branch_is_tried_again_in_the_repaired_program() -> None:
    scenario = replace(find("wait-in-one-branch"), fixed_by="")
    replayed = replay_fixed(scenario, NUMPY)
    assert (replayed.id, replayed.verdict) == ("wait-in-one-branch, repaired", "ok")
    assert [(one.held.line, one.tried.line) for one in replayed.shown] == [(18, 21)]  # the branch that does not wait


def test_unknown_backends_and_devices_are_refused() -> None:
    with pytest.raises(InputError, match="unknown backend 'numpy'; known: torch, jax"):
        machines("numpy", "cpu")
    with pytest.raises(InputError, match="backend 'torch' replays scenarios on cpu, cuda, not on 'tpu'"):
        machines("torch", "tpu")
    with pytest.raises(
        InputError, match="'strict' does not say how it replays scenarios; choose one of: torch, jax; or"
    ):
        machines("strict", "cpu")


def test_without_a_device_cuda_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InputError, match="no CUDA device here"):
        machines("torch", "cuda")
