"""Which kinds of tables, markers and tickets go together, and why others do not."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from warfence.core.errors import InputError
from warfence.core.modes import check_ticket
from warfence.host import cuda

TABLES = ("donated", "aliased", "device", "copied")
MARKERS = ("cut", "word", "node")
HELD = "the runtime holds a donated table until the executable that took it is over, so only a cut ends that at the boundary"
COPIED = "a write makes a new table and leaves the old one to its readers, so no marker inside could help"


@dataclass(frozen=True, slots=True)
class Options:
    """What a backend was asked for, complete: nothing is left to a default."""

    tables: str
    marker: str

    @property
    def by_value(self) -> bool:
        return self.marker == "word"


def no_device_tables(device: str) -> str:
    """Why there can be no tables on this device that streams of our own write; "" where there can."""
    if device == "cpu":
        return "it is memory of a GPU, and the device is cpu"
    try:
        from jax.experimental import buffer_callback  # noqa: F401
    except ImportError:
        return f"jax {jax.__version__} has no jax.experimental.buffer_callback, which tells XLA's stream: install jax>=0.10"
    return cuda.missing()


def choose(tables: str | None, marker: str | None, ticket: str | None, no_device: str) -> Options:
    """The options given (None: not given), completed. no_device: why there can be no
    tables on the device; "" where there can.

    InputError for what there is not, or for what does not go together, with the reason.
    """
    if jax.config.jax_disable_jit:  # type: ignore[attr-defined]
        raise InputError(
            "backend jax: JAX_DISABLE_JIT is set, so nothing is compiled, cut or donated; unset it, or use --backend torch"
        )
    if tables is None:
        tables = "device" if not no_device else "donated"
    if tables not in TABLES:
        raise InputError(f"backend jax: unknown kind of tables '{tables}'; choose one of: {', '.join(TABLES)}")
    if tables == "device" and no_device:
        raise InputError(f"backend jax: tables 'device' cannot be had: {no_device}; use 'donated' or 'aliased'")
    if marker is not None and marker not in MARKERS:
        raise InputError(f"backend jax: unknown marker '{marker}'; choose one of: {', '.join(MARKERS)}")
    held = {"donated": HELD, "copied": COPIED}.get(tables)
    if held is not None and marker not in (None, "cut"):
        raise InputError(
            f"backend jax: marker '{marker}' with tables '{tables}': {held}; use the marker 'cut', or "
            f"tables that nothing holds ('aliased', or 'device' on a GPU)"
        )
    if tables == "device" and marker == "cut":
        raise InputError(
            "backend jax: marker 'cut' with tables 'device': a cut ends a donation's hold, and these are not donated; use 'word'"
        )
    if marker == "node" and no_device:
        raise InputError(f"backend jax: marker 'node' is an event in XLA's own graph on a GPU: {no_device}; use 'word'")
    if marker == "node" and tables != "device":
        raise InputError(
            f"backend jax: marker 'node' with tables '{tables}': XLA's graph reads no such table; use 'word'"
        )
    marker = marker or ("cut" if held is not None else "word")
    if ticket is not None:
        check_ticket("jax", ticket)
        if (ticket == "value") is not (marker == "word"):
            raise InputError(
                f"backend jax: marker '{marker}' gives tickets by {'value' if marker == 'word' else 'event'}, not by "
                f"{ticket}; by value is the marker 'word' (with tables 'aliased' or 'device')"
            )
    return Options(tables, marker)
