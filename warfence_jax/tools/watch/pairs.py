"""The scenarios of public reports about aliased host memory and donation, with their right verdicts."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from warfence.core.errors import DeadHandleError
from warfence.races.check.pairs.run import Result, verdict_of
from warfence_jax.tools.watch.watching import HostWatch, watch_host

SIZE, ALIGNMENT = 1024, 64


def host_array() -> np.ndarray:
    """Zeroed int32 [SIZE] that starts where the CPU client aliases it."""
    raw = np.zeros(4 * SIZE + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + 4 * SIZE].view(np.int32)


@jax.jit
def read(table: Array) -> Array:
    """Any program that reads the table."""
    return table + 1


write = jax.jit(lambda table: table.at[0].set(5), donate_argnums=0)


def alias(w: HostWatch, copied: bool = False, synchronized: bool = False) -> None:
    """The host fills an array again that it gave to a program, the array itself or a copy of it."""
    n = w.guard(host_array(), "n")
    out = w.call(read, jax.device_put(np.copy(n) if copied else n))
    if synchronized:
        w.wait(out)
    with w.writing(n):
        n[:] = 7


def donation(w: HostWatch, again: bool = False, view: bool = False) -> None:
    """One lane reads a table, another one's write donates it, once or twice, while a numpy view of it is alive or not."""
    table = read(jnp.zeros(SIZE, np.int32))
    seen = np.asarray(table) if view else None
    w.call(read, table)
    w.call(write, table, lane="schedule", stage="write", donated=(0,))
    if again:
        w.call(write, table, lane="plan", stage="write again", donated=(0,))
    del seen


Play = Callable[[HostWatch], None]
SCENARIOS: tuple[tuple[str, str, Play], ...] = (
    ("alias", "bad", alias),
    ("alias-copied", "ok", lambda w: alias(w, copied=True)),
    ("alias-fixed", "ok", lambda w: alias(w, synchronized=True)),
    ("double-donation", "error", lambda w: donation(w, again=True)),
    ("donation-hold", "ok", donation),
    ("donation-refused", "safe by copy", lambda w: donation(w, view=True)),
)


def play(name: str, expected: str, scenario: Play) -> Result:
    """One scenario under a watch of its own, on the CPU client: only there is host memory aliased."""
    with jax.default_device(jax.devices("cpu")[0]), watch_host() as w:
        try:
            scenario(w)
        except DeadHandleError:
            return Result(name, expected, "error", ("two donors",))
        report = w.check()
        verdict = "safe by copy" if w.refused and not report.findings else verdict_of(report, expected)
        return Result(name, expected, verdict, tuple(sorted(report.kinds())))


def play_all() -> list[Result]:
    """All of them."""
    return [play(*scenario) for scenario in SCENARIOS]
