"""Arrays, names and kernels that the interface does not promise to take: the strict backend refuses each with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from warfence.core.backend import ArraySpec
from warfence.core.errors import FenceError, InputError, StageError, WarfenceError
from warfence.parity.strict.backend import StrictBackend

Make = Callable[..., Any]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


# -- writes


@pytest.mark.parametrize(
    ("cells", "values", "message"),
    [
        (ints(1, 0, 1), ints(1, 2, 3), "cell 1 occurs twice, and which value stays depends on the device"),
        (ints(4), ints(1), r"cell 4 is outside; the table has 4 cells \[1, 4\], counted from 0"),
        (ints(0, -1), ints(1, 1), "cell -1 is outside"),
        (ints(0, 1), ints(1), "2 cells but 1 values; give one for each"),
        (np.array([0]), ints(1), r"cells are int64\[1\]; give one int32 vector"),
        (ints(0), np.array([1.0]), r"values are float64\[1\]"),
        (ints(0).reshape(1, 1), ints(1), r"cells are int32\[1, 1\]"),
        ([0], ints(1), "cells are list"),
    ],
)
def test_writes_that_no_scatter_promises(toy: Any, cells: Any, values: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"write to table 't': {message}"):
        toy.tables.write(toy.schedule, "t", cells, values)
    assert toy.tables.snapshot_to_host("t").tolist() == [[0, 0, 0, 0]]


def test_writes_to_what_is_not_there(toy: Any, make_toy: Make) -> None:
    with pytest.raises(InputError, match="no table 'v'; tables: t, u"):
        toy.write(1, "v")
    with pytest.raises(InputError, match="no table 'v'"):
        toy.tables.snapshot_to_host("v")
    with pytest.raises(FenceError, match="table 't' was to be written on lane 'schedule' of another backend"):
        toy.tables.write(make_toy().schedule, "t", ints(0), ints(1))


def test_arrays_of_a_write_that_are_changed_before_it_lands(toy: Any) -> None:
    values = ints(1)
    toy.tables.write(toy.schedule, "t", ints(0), values)
    values[0] = 2
    outputs = toy.launch(1)
    message = "table 't': its arrays were changed between write"
    for call in (
        toy.schedule.synchronize,
        outputs.result,
        lambda: toy.write(3),
        lambda: toy.tables.snapshot_to_host("t"),
    ):
        with pytest.raises(FenceError, match=message):
            call()


def test_no_cells_is_a_write_all_the_same(toy: Any) -> None:
    toy.tables.write(toy.schedule, "t", ints(), ints())
    toy.schedule.synchronize()
    assert toy.happened() == ["stage write t"], "one step of the lane, which touches nothing"


# -- making things


def test_tables_and_load_come_once_and_before_compile(toy: Any) -> None:
    fresh = StrictBackend()
    with pytest.raises(FenceError, match=r"compile of 'toy' before tables\(\): call tables\(\), then load\(\)"):
        fresh.compile(toy.program)
    fresh.tables({"t": ArraySpec((1, 4))})
    with pytest.raises(FenceError, match=r"compile of 'toy' before load\(\)"):
        fresh.compile(toy.program)
    for call in (lambda: toy.backend.tables({}), lambda: toy.backend.load({}, {})):
        with pytest.raises(FenceError, match=r"\(\) was called twice; call it once, before compile\(\)"):
            call()


def test_arrays_of_another_kind() -> None:
    with pytest.raises(InputError, match="table 't' is float32; shared tables are int32"):
        StrictBackend().tables({"t": ArraySpec((1, 1), "float32")})
    with pytest.raises(InputError, match="weight 'w' is float64; weights are float32"):
        StrictBackend().load({"w": np.zeros(1)}, {})


@pytest.mark.parametrize("markers", [True, False])
@pytest.mark.parametrize("stage", ["take", "keep", "start"])
def test_a_marker_elsewhere_than_in_the_replay(make_toy: Make, stage: str, markers: bool) -> None:
    toy = make_toy(backend={"external_markers": markers})
    assert (toy.forward.marker is not None) is markers
    with pytest.raises(InputError, match=f"after '{stage}' cannot be planted, .* replay stages: read, think"):
        toy.backend.compile(toy.program, marker_after=stage)
    with pytest.raises(InputError, match="no stage 'red'; nearest: read"):
        toy.backend.compile(toy.program, marker_after="red")


def test_ops_and_arrays_that_are_not_there(toy: Any) -> None:
    stage = toy.program.stages[0]
    for change, message in (
        ({"op": "magic"}, "stage 'take' has the op 'magic'; this backend knows: early, late, think, keep"),
        ({"reads": ("v",)}, r"stage 'take' needs \['v'\], which were not made"),
    ):
        with pytest.raises(InputError, match=message):
            toy.backend.compile(replace(toy.program, stages=(replace(stage, **change), *toy.program.stages[1:])))


def test_names_that_are_not_there(toy: Any) -> None:
    for call, message in (
        (lambda: StrictBackend("cuda"), "backend strict: unknown device 'cuda'; it has only: cpu"),
        (lambda: StrictBackend(adversary="god"), "unknown adversary 'god'; choose one of: war, raw"),
        (lambda: toy.backend.lane("draft"), "no lane 'draft'; lanes: schedule, forward, plan"),
        (lambda: toy.backend.state_to_host("kv"), "no state 'kv'; state: s"),
        (lambda: StrictBackend().state_to_host("kv"), r"no state 'kv'; state: none, call load\(\) first"),
        (lambda: toy.forward.gates.close("red"), "no gate at 'red'; gates: start, take, read, think, keep"),
    ):
        with pytest.raises(InputError, match=message):
            call()


# -- what a stage does


@pytest.mark.parametrize(
    ("op", "kernel", "error", "message"),
    [
        ("late", lambda env, attrs: {"late": env["u"][0]}, StageError, "uses 'u', which it does not declare"),
        ("late", lambda env, attrs: {}, StageError, r"stage 'read' gave \[\] but declares \['late'\]"),
        ("late", lambda env, attrs: {"late": env["t"][0, :1]}, FenceError, "'late' is a view of 't'; give a copy"),
        ("late", lambda env, attrs: env["t"].__setitem__(0, 1), StageError, "read-only"),
        ("think", lambda env, attrs: env["late"].__setitem__(0, 1), StageError, "read-only"),
    ],
)
def test_kernels_that_do_what_their_stage_does_not_declare(
    make_toy: Make, op: str, kernel: Any, error: type[WarfenceError], message: str
) -> None:
    stage = {"late": "read", "think": "think"}[op]
    with pytest.raises(error, match=f"launch 1, stage '{stage}'.*{message}"):
        make_toy({op: kernel}).launch(1).result()
