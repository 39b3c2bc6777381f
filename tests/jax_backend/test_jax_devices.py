from __future__ import annotations

import jax
import pytest

from warfence.core.errors import InputError
from warfence_jax.backend import JaxBackend
from warfence_jax.compiler import aliased_arguments

from .conftest import MakeRig, check
from .test_jax_gates import landing


def test_options_that_there_are_not_are_refused() -> None:
    with pytest.raises(InputError, match="unknown device 'tpu'; choose one of: cpu, gpu, cuda"):
        JaxBackend("tpu")
    with pytest.raises(
        InputError, match="unknown kind of tables 'shared'; choose one of: donated, aliased, device, copied"
    ):
        JaxBackend(tables="shared")
    with pytest.raises(InputError, match="aliased tables are written by a lane's thread; leave threaded=True"):
        JaxBackend(tables="aliased", threaded=False)


@pytest.mark.skipif(any(d.platform == "gpu" for d in jax.devices()), reason="there is a GPU")
@pytest.mark.parametrize("device", ["gpu", "cuda"])
def test_a_device_that_is_not_here_is_an_input_error_that_says_what_is(device: str) -> None:
    with pytest.raises(InputError, match=f"device '{device}' needs a gpu client, and there is none; this JAX has: cpu"):
        JaxBackend(device)


def test_capabilities_say_what_guards_the_tables_and_what_cannot_overlap() -> None:
    made = {kind: JaxBackend(tables=kind).capabilities for kind in ("donated", "aliased")}
    assert all(c.external_markers and c.gates and c.precise_release for c in made.values())
    assert made["donated"].guards_writes
    assert not made["aliased"].guards_writes
    assert "only the fence" in made["aliased"].reasons["guards_writes"]
    one_thread = JaxBackend(threaded=False).capabilities
    assert not one_thread.precise_release
    assert "one thread" in one_thread.reasons["precise_release"]


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("threaded", [False, True])
def test_a_gpu_gives_the_tokens_of_the_reference(make_rig: MakeRig, threaded: bool) -> None:
    rig = make_rig((False, True, False, True), device="cuda", tables="donated", threaded=threaded)
    check(rig, "live")
    devices = {e.segment.label: e.device.platform for e in rig.compile("live", rows=2).executables}
    assert devices == {
        "stage_inputs": "gpu", "page_table": "cpu", "embed..layer.0": "gpu", "swa_translate.1": "cpu",
        "layer.1..layer.2": "gpu", "swa_translate.3": "cpu", "layer.3..sample": "gpu", "relay": "gpu",
    }  # fmt: skip
    for executable in rig.compile("live", rows=2).executables:
        segment = executable.segment
        first = len(segment.tables) + len(executable.takes)
        assert aliased_arguments(executable.compiled) == set(range(first, first + len(segment.state))), segment.label


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("tables", ["donated", "aliased"])
@pytest.mark.parametrize(
    ("attention", "policy", "expected"),
    [
        ("snapshot", "pre_replay", "swa_translate"),
        ("captured", "in_graph", "swa_translate"),
        ("live", "in_graph", "swa_translate.0"),
        ("live", "post_replay", "sample"),
        ("live", "none", None),
    ],
)
def test_a_write_lands_while_the_gpu_is_held(
    make_rig: MakeRig, attention: str, policy: str, expected: str | None, tables: str
) -> None:
    rig = make_rig(device="gpu", tables=tables)
    forward = rig.compile(attention, gated=True, marker=policy == "in_graph")
    assert landing(rig, forward, policy) == expected
    assert forward.gates.watchdog_fired == []
    assert rig.backend.report()["refused"] == 0
