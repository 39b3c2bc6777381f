"""Forwards that are broken into segments: the same results, and tables go as soon as no later segment reads them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from warfence.core.backend import Forward
from warfence_jax.compiler import aliased_arguments

from .conftest import MakeRig, Rig
from .test_jax_gates import issue, landing


def broken(
    rig: Rig, *breaks: str, attention: str = "captured", marker: str | None = None, gated: bool = False
) -> Forward:
    program = replace(rig.compile(attention).program, breaks=breaks)
    return rig.backend.compile(program, marker_after=marker, gated=gated)


def stages(forward: Forward) -> list[tuple[str, ...]]:
    return [tuple(s.name for s in e.segment.stages) for e in forward.executables]


SEGMENTS = {
    "captured": [
        ("stage_inputs",), ("page_table", "swa_translate", "embed"), ("layer.0",), ("layer.1", "logits", "sample"),
        ("relay",),
    ],
    "live": [
        ("stage_inputs", "page_table"), ("embed",), ("layer.0",), ("swa_translate.1", "layer.1", "logits", "sample"),
        ("relay",),
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("attention", SEGMENTS)
def test_breaks_change_no_output(make_rig: MakeRig, attention: str) -> None:
    rig = make_rig((False, True))
    whole, parts = rig.compile(attention), broken(rig, "embed", "layer.0", attention=attention)
    assert stages(parts) == SEGMENTS[attention]
    for executable in parts.executables:
        segment = executable.segment
        first = len(segment.tables) + len(executable.takes)
        assert aliased_arguments(executable.compiled) == set(range(first, first + len(segment.state))), segment.label
    for position, token in enumerate((7, 3, 40, 17)):
        one, two = (rig.launch(forward, [(1, position, (token,), False)]).result() for forward in (whole, parts))
        assert one["next_tokens"].tolist() == two["next_tokens"].tolist()
        np.testing.assert_allclose(one["margin"], two["margin"], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_table_is_an_argument_of_the_segments_that_read_it_and_of_no_other(rig: Rig) -> None:
    """Without fence and marker: the runtime lets a write through once the first segment is over."""
    forward = broken(rig, "embed", gated=True)
    assert stages(forward)[1:] == [
        ("page_table", "swa_translate", "embed"),
        ("layer.0", "logits", "sample"),
        ("relay",),
    ]
    assert [bool(e.segment.tables) for e in forward.executables] == [False, True, False, False]
    assert landing(rig, forward, "off") == "embed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attention", "breaks", "marker"),
    [("captured", ("embed", "layer.0"), "page_table"), ("captured", ("swa_translate", "layer.0"), "swa_translate"),
     ("live", ("embed",), "swa_translate.0")],
)  # fmt: skip
def test_the_marker_may_stand_in_any_segment(rig: Rig, attention: str, breaks: tuple[str, ...], marker: str) -> None:
    forward = broken(rig, *breaks, attention=attention, marker=marker, gated=True)
    forward.gates.close(marker)
    outputs, ticket = issue(rig, forward, "in_graph")
    forward.gates.await_reached(marker)
    ticket.source.synchronize()
    assert ticket.source.done()
    forward.gates.open(marker)
    outputs.result()


@pytest.mark.slow
def test_a_write_lands_behind_the_marker_of_a_later_segment(rig: Rig) -> None:
    forward = broken(rig, "embed", attention="live", marker="swa_translate.0", gated=True)
    held = rig.backend.report()["writes_held"]
    assert landing(rig, forward, "in_graph") == "swa_translate.0"
    assert rig.backend.report()["writes_held"] == held
