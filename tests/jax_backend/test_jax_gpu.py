"""Tables on a GPU: memory that JAX reads and streams of our own write, behind a word or an event inside one executable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from warfence.core.backend import SCHEDULE, ArraySpec
from warfence.core.errors import FenceError, InputError, StageError
from warfence.core.fence import AtLeast, Ticket
from warfence.parity.cells import matrix
from warfence.parity.laws import LAWS, Bench, Law
from warfence.parity.matrix import run_cell
from warfence.parity.mutants import MUTANTS, Mutant, run_mutant
from warfence.parity.rig import Rig as ProbeRig
from warfence.parity.scorecard import check_law
from warfence.parity.small import SmallModel, small_model
from warfence_jax.backend import JaxBackend

from .conftest import MakeRig, check

pytestmark = pytest.mark.gpu
CELLS = [
    c
    for c in matrix(("decode", "extend+switch", "target_verify+dflash"), ("snapshot", "captured", "live", "segmented"))
    if c.batch == 1 and c.fence != "donation"
]


@pytest.fixture(scope="module")
def small() -> SmallModel:
    return small_model()


@pytest.fixture(scope="module", params=["word", "node"])
def probe(request: pytest.FixtureRequest, small: SmallModel) -> Iterator[ProbeRig]:
    backend = JaxBackend("cuda", marker=request.param)
    made = ProbeRig(backend, small)
    yield made
    backend.close()


@pytest.fixture(scope="module")
def bench(small: SmallModel) -> Iterator[Bench]:
    made = Bench(lambda: JaxBackend("cuda"), small)
    yield made
    made.discard()


def test_they_are_the_default_and_nothing_but_the_fence_guards_them() -> None:
    backend = JaxBackend("cuda")
    assert backend.device == "cuda"
    assert not backend.devices.split
    assert not backend.capabilities.guards_writes
    assert backend.capabilities.value_tickets
    assert backend.capabilities.ways["node"] == ""
    backend.close()


def test_a_stream_of_our_own_writes_what_jax_reads() -> None:
    backend = JaxBackend("cuda")
    tables = backend.tables({"t": ArraySpec((4, 8))})
    rng = np.random.default_rng(0)
    expected = np.zeros(32, np.int32)
    for count in (1, 7, 32):
        cells = rng.choice(32, count, replace=False).astype(np.int32)
        values = rng.integers(-9, 9, count).astype(np.int32)
        expected[cells] = values
        tables.write(backend.lane(SCHEDULE), "t", cells, values)
    assert tables.snapshot_to_host("t").ravel().tolist() == expected.tolist()
    handle = tables.capture(None, ["t"])["t"].handle
    assert np.array(jax.numpy.copy(handle)).ravel().tolist() == expected.tolist()
    backend.close()


@pytest.mark.parametrize("attention", ["captured", "live", "segmented"])
def test_tokens_are_those_of_the_reference(make_rig: MakeRig, attention: str) -> None:
    check(make_rig((True, False), device="cuda"), attention)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_write_lands_at_the_boundary_inside_one_executable(probe: ProbeRig, cell: Any) -> None:
    result = run_cell({"jax": probe}, cell)
    assert result.ok, (result.expected, result.release, result.notes)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.id)
def test_law_holds(bench: Bench, law: Law) -> None:
    result = check_law(law, bench)
    assert result.outcome == "held", result.message


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_mutant_is_caught_by_its_law(bench: Bench, small: SmallModel, mutant: Mutant) -> None:
    result = run_mutant(mutant, bench, lambda: JaxBackend("cuda"), small)
    assert result.ok, (result.right, result.caught_by, result.message)


def test_a_launch_that_never_comes_ends_with_a_sentence(make_rig: MakeRig) -> None:
    rig = make_rig(device="cuda")
    word = rig.compile().marker.word
    word.watchdog_s = 0.05
    rig.schedule.wait(Ticket(7, AtLeast(word, 5, 7)))
    rig.write()
    with pytest.raises(FenceError, match=r"launch number 5 of 'decode/captured/1x1' stood for 0\.05 s"):
        rig.schedule.synchronize()


def test_a_table_that_was_deleted_is_refused(make_rig: MakeRig) -> None:
    rig = make_rig(device="cuda")
    forward = rig.compile()
    rig.tables.capture(None, ["req_to_token"])["req_to_token"].handle.delete()
    with pytest.raises(FenceError, match="table 'req_to_token' was deleted while it is in use"):
        rig.launch(forward)


def test_a_callback_that_raises_names_launch_and_stage(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    from warfence_jax.gpu import inside

    def fails(*given: object) -> None:
        raise RuntimeError("no stream")

    rig = make_rig(device="cuda", marker="node")
    monkeypatch.setattr(inside, "use_device", fails)
    forward = rig.compile()
    with pytest.raises(StageError, match=r"launch 1, stage 'page_table\.\.sample'.*no stream"):
        rig.launch(forward)


def test_a_dtype_that_is_none_is_refused() -> None:
    backend = JaxBackend("cuda")
    with pytest.raises(InputError, match=r"shared tables are int32; given were 't' \(float32\)"):
        backend.tables({"t": ArraySpec((4, 8), "float32")})
    backend.close()
