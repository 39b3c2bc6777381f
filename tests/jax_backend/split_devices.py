"""Run as a program: tables on one CPU device, compute on another, as with a GPU. JAX must not have started before."""

from __future__ import annotations

import jax

from tests.jax_backend import late
from tests.jax_backend.conftest import Rig, check
from tests.jax_backend.test_jax_gates import LANDINGS, landing
from warfence_jax import backend
from warfence_jax.devices import Devices


def main() -> None:
    """Tokens of the reference; then where writes land."""
    jax.config.update("jax_num_cpu_devices", 2)
    tables, compute = jax.devices("cpu")
    backend.find_devices = lambda device, in_place: Devices(tables, compute)
    rig = Rig((False, True), threaded=False)
    check(rig, "live")
    places = {e.segment.label: e.device for e in rig.compile("live", rows=2).executables}
    assert places == {
        "stage_inputs": compute, "page_table": tables, "embed..layer.0": compute, "swa_translate.1": tables,
        "layer.1..sample": compute, "relay": compute,
    }  # fmt: skip
    rig.backend.close()
    rig = Rig((True,))
    for attention, policy, expected in (LANDINGS[1], LANDINGS[3], LANDINGS[4]):
        forward = rig.compile(attention, gated=True, marker=policy == "in_graph")
        seen = landing(rig, forward, policy)
        assert seen == expected, (attention, policy, expected, seen)
    report = rig.backend.report()
    assert (report["writes_held"], report["writes_copied"], report["refused"]) == (0, 0, 0)
    rig.backend.close()
    check_late(tables, compute)


def check_late(tables: jax.Device, compute: jax.Device) -> None:
    """Tables are read in the tail too; what has state runs where the state is."""
    for gated in (False, True):
        made = backend.JaxBackend()
        forward = late.make(made, gated=gated)
        places = [(e.segment.label, e.device) for e in forward.executables]
        assert places == [
            ("resolve", compute), ("page_table", tables), ("token_locs", compute), ("swa_page_table", tables),
            ("swa_window..store", compute), ("commit", compute), ("page_table_again", tables), ("lookup..keep", compute),
        ]  # fmt: skip
        seen = late.serve(made, forward)
        assert seen == late.expected(), seen
        made.close()


if __name__ == "__main__":
    main()
