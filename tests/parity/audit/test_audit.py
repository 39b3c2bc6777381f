"""The audit: right declarations are clean, and each kind of wrong one is named with its stage and code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from warfence.backends import load
from warfence.cli import main
from warfence.core.attention import AttentionBackend
from warfence.core.errors import FenceError, InputError
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN
from warfence.parity.audit import audit as audit_module
from warfence.parity.audit.audit import audit_cell, cells
from warfence.parity.audit.last_read import LastRead
from warfence.parity.audit.scene import Scene
from warfence.parity.rig import Rig, program_of
from warfence.parity.small import make_engine, small_model

SMALL = small_model()


@pytest.fixture(scope="module", params=["torch", "strict"])
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    backend = load(request.param)()
    yield Rig(backend, SMALL)
    backend.close()


def of(rig: Rig, mode: str, attention: str) -> audit_module.Audited:
    (cell,) = cells([mode], [attention])
    return audit_cell({"it": rig}, cell)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "attention"), [("decode", "captured"), ("target_verify+ngram", "live"), ("idle", "live")]
)
def test_what_we_declare_is_what_is_found_and_measured(rig: Rig, mode: str, attention: str) -> None:
    result = of(rig, mode, attention)
    assert result.problems == []
    assert result.measured == {"it": result.boundary}
    assert set(result.found.values()) <= {result.boundary}


def declaring(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    """Audit programs that were changed after they were made."""

    def changed(*args: Any, **kwargs: Any) -> Any:
        program, fence = program_of(*args, **kwargs)
        return change(program), fence

    monkeypatch.setattr(audit_module, "program_of", changed)
    monkeypatch.setattr("warfence.parity.rig.program_of", changed)


@pytest.mark.slow
def test_a_stage_that_declares_a_read_that_it_does_not_do(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    declaring(monkeypatch, lambda p: replace(p, stages=tuple(_reads_too(s, "logits") for s in p.stages)))
    result = of(rig, "decode", "captured")
    assert result.boundary == "logits"
    assert result.measured == {"it": "swa_translate"}
    assert any("overwriting the tables shows up to and with 'swa_translate'" in p for p in result.problems)
    assert not result.found or any("'swa_translate' is found to read last" in p for p in result.problems)


def _reads_too(stage: Any, name: str) -> Any:
    return replace(stage, reads=(REQ_TO_TOKEN,)) if stage.name == name else stage


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_an_attention_backend_that_says_too_early_is_told_the_stage_and_its_code(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AttentionBackend, "last_reader", lambda self, mode: "page_table")
    backend = load(name)()
    try:
        (cell,) = cells(["decode"], ["captured"])
        (problem,) = audit_cell({"it": Rig(backend, SMALL)}, cell, measure=False).problems
    finally:
        backend.close()
    assert (
        "declared to end after 'page_table', but stage 'swa_translate' is found to read 'full_to_swa' last" in problem
    )
    assert f"warfence_{name}/kernels/model.py:" in problem


@dataclass(frozen=True)
class Seen:
    stage: str | None
    tables: tuple[str, ...] = ()
    place: str = ""


@pytest.mark.parametrize(("stage", "right"), [("swa_translate", True), ("layer.0", False), (None, False)])
def test_what_a_graph_says_is_a_column_of_its_own(
    monkeypatch: pytest.MonkeyPatch, stage: str | None, right: bool
) -> None:
    backend = load("strict")()
    monkeypatch.setattr(backend, "graph_boundary", lambda program: Seen(stage), raising=False)
    (cell,) = cells(["decode"], ["captured"])
    rig = Rig(backend, SMALL)
    result = audit_cell({"it": rig}, cell, measure=False)
    assert result.graph == {"it": stage or "none"}
    assert (result.problems == []) is right
    assert right or "is the last in the graph to hold a table, declared is 'swa_translate'" in result.problems[0]
    monkeypatch.setattr(backend, "graph_boundary", lambda program: None)
    assert audit_cell({"it": rig}, cell, measure=False).graph == {}


def test_an_engine_refuses_a_declaration_that_is_not_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AttentionBackend, "last_reader", lambda self, mode: "page_table")
    with pytest.raises(InputError, match="'swa_translate' is found to read 'full_to_swa' last"):
        make_engine(SMALL, load("torch")(), attention="captured")


def test_guarded_tables_cannot_be_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = load("strict")()
    rig = Rig(backend, SMALL)
    monkeypatch.setattr(backend, "capabilities", replace(backend.capabilities, guards_writes=True))
    (cell,) = cells(["decode"], ["snapshot"])
    tables = {name: rig.tables.snapshot_to_host(name) for name in (REQ_TO_TOKEN, FULL_TO_SWA)}
    planned, _ = rig.planned(cell)
    with pytest.raises(FenceError, match="guards its tables"):
        LastRead(rig.fixture, planned, Scene(cell, tables))
    result = audit_cell({"it": rig}, cell)
    assert result.measured == {}
    assert "guards the tables" in result.notes["it"]


@pytest.mark.slow
def test_aliased_arrays_are_measured_too() -> None:
    backend = load("jax")(tables="aliased")
    try:
        result = of(Rig(backend, SMALL), "decode", "captured")
    finally:
        backend.close()
    assert result.problems == []
    assert result.found == result.measured == {"it": "swa_translate"}


def test_the_command_prints_what_is_equal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--backend", "strict", "--mode", "decode", "--attention", "snapshot"]) == 0
    assert "trusted with what is declared" in " ".join(capsys.readouterr().out.split())


def test_the_command_fails_on_a_wrong_declaration(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AttentionBackend, "last_reader", lambda self, mode: "page_table")
    options = ["--backend", "torch", "--mode", "decode", "--attention", "captured", "--no-measure"]
    assert main(["audit", *options, "--json"]) == 1
    printed = capsys.readouterr()
    assert not json.loads(printed.out)["ok"]
    assert "1 of 1 declarations are not what was found or measured" in printed.err
    assert main(["audit", *options]) == 1
    assert "decode / captured: torch: the reads are declared to end after 'page_table'" in capsys.readouterr().out


def test_the_command_refuses_unknown_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--backend", "strict", "--mode", "decod"]) == 2
    assert "decode" in capsys.readouterr().err
