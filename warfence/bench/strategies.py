"""What is compared: every way to keep a table write from overtaking a read, as data."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field

from warfence import backends
from warfence.core.backend import Capabilities
from warfence.core.modes import FenceMode

COPY = "copy"  # beside the kinds of attention: private copies of whole tables
REFERENCE = "in_graph"  # the fine fence that the others are compared with


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy.

    attention: where the forward reads the tables (`warfence.core.attention`), or COPY. marker: the read-done marker is planted.
    serial: each result is awaited before the next step. at_writer: no barrier; each write waits for the forward lane.
    options: of the backend's constructor. needs: a capability.
    """

    name: str
    what: str
    attention: str = "captured"
    marker: bool = True
    fence: FenceMode = FenceMode.FINE
    serial: bool = False
    at_writer: bool = False
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    needs: str | None = None

    @property
    def forward(self) -> tuple[str, bool]:
        """Strategies that are alike in this share a compiled forward, where they share a backend."""
        return self.attention, self.marker

    def lacking(self, capabilities: Capabilities) -> str | None:
        """Why a backend cannot do this; None where it can."""
        if self.needs is None or getattr(capabilities, self.needs):
            return None
        return f"no {self.needs}: {capabilities.reasons.get(self.needs, 'the backend does not say why')}"


STRATEGIES: tuple[Strategy, ...] = (
    Strategy("serial", "no overlap: each result is awaited before the next step begins", serial=True),
    Strategy("coarse", "writes wait for the whole forward", fence=FenceMode.COARSE),
    Strategy(
        "writer", "no barrier: each write waits for the forward itself, as an allocator whose free waits",
        fence=FenceMode.OFF, at_writer=True,
    ),
    Strategy("self", "the host itself waits for the forward, the older way", fence=FenceMode.SELF),
    Strategy("pre_replay", "all reads while the batch is loaded; a ticket before the replay", attention="snapshot"),
    Strategy(
        "in_graph", "reads in the captured forward, which carries a marker (or whose chain is cut there)",
        needs="external_markers",
    ),
    Strategy("post_replay", "the same without a marker: a ticket after the replay (or an uncut chain)", marker=False),
    Strategy("copy", "a private copy of whole tables a step, as double buffers; writes wait for the copy", attention=COPY),
    Strategy("fresh_staging", "as in_graph, with new pinned memory for each upload", options={"staging": "fresh"}),
    Strategy("by_value", "as in_graph, with tickets by value: a word that counts launches", options={"ticket": "value"}),
    Strategy(
        "word", "tables that only the fence guards, behind a word inside one executable",
        options={"marker": "word", "tables": "aliased"},
    ),
    Strategy(
        "node", "an event inside one executable, recorded by the runtime's own graph",
        options={"marker": "node", "tables": "device"},
    ),
    Strategy(
        "cut", "tables beside the device that the runtime guards, and a chain cut at the boundary",
        options={"marker": "cut", "tables": "donated"},
    ),
    Strategy(
        "donation_only", "no fence: the runtime holds a write until nobody reads the table",
        fence=FenceMode.OFF, needs="guards_writes",
    ),
    Strategy(
        "copied_tables", "no fence and no donation: each write makes a new table",
        fence=FenceMode.OFF, options={"tables": "copied"}, needs="guards_writes",
    ),
)  # fmt: skip
NAMES = tuple(strategy.name for strategy in STRATEGIES)


def not_taken(backend: str, options: Mapping[str, str]) -> str | None:
    """Why the backend's constructor does not take these options; None where it does. Loads the backend's package."""
    try:
        inspect.signature(backends.load(backend)).bind(device="", **options)
    except TypeError:
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        return f"backend {backend} has no option {given}"
    return None
