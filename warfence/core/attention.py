"""Attention backends: where their metadata is made, and where, per mode, they declare that their shared reads end.

A model has full layers and sliding layers; each kind of layer is served by a child. A child makes its metadata while
the batch is loaded (`snapshot`), at the head of the captured forward (`captured`), or looks the live table up before
each layer (`live`). A composite answers with the latest of the children that the model uses (law 9; public source:
sglang #34982). A hybrid has one kind for some modes and another for the rest, such as one for prefill and one for decoding: it
answers with the one that serves the mode.

A package brings a kind of its own with an entry point of the group `warfence.attention_kinds` that gives an `AttentionKind`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib.metadata import entry_points

from warfence.core.batch import Batch
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode, SharedReadEnds
from warfence.core.plugins import load_entry

GROUP = "warfence.attention_kinds"


Snapshots = Callable[[ForwardMode, Batch], bool]


class MetadataPlace(Enum):
    """Where a child turns shared tables into the forward's own metadata."""

    LOAD_BATCH = "load_batch"
    REPLAY_HEAD = "replay_head"
    EACH_LAYER = "each_layer"


_READING_MODES = (ForwardMode.DECODE, ForwardMode.EXTEND, ForwardMode.TARGET_VERIFY, ForwardMode.DRAFT_EXTEND)


def _declares(ends: SharedReadEnds) -> Mapping[ForwardMode, SharedReadEnds]:
    return dict.fromkeys(_READING_MODES, ends)


@dataclass(frozen=True, slots=True)
class Child:
    """One attention implementation. A mode that it does not name is UNKNOWN."""

    name: str
    place: MetadataPlace
    declared: Mapping[ForwardMode, SharedReadEnds]

    def shared_read_ends(self, mode: ForwardMode) -> SharedReadEnds:
        return self.declared.get(mode, SharedReadEnds.UNKNOWN)


SNAPSHOT = Child("snapshot", MetadataPlace.LOAD_BATCH, _declares(SharedReadEnds.PRE_REPLAY))
CAPTURED = Child("captured", MetadataPlace.REPLAY_HEAD, _declares(SharedReadEnds.IN_GRAPH))
LIVE = Child("live", MetadataPlace.EACH_LAYER, _declares(SharedReadEnds.IN_GRAPH))
REREADING = Child("rereading", MetadataPlace.EACH_LAYER, _declares(SharedReadEnds.POST_REPLAY))
UNKNOWN = Child("unknown", MetadataPlace.EACH_LAYER, {})


@dataclass(frozen=True, slots=True)
class AttentionBackend:
    """The attention of a whole model: one child for full layers, one for sliding layers.

    sliding_layers: indices of the sliding-window layers; without any, the sliding child is not asked.
    segmented: its captured forward is broken into segments, one a layer, each captured by itself.
    by_mode: the kinds that serve these modes in its place. What this class says without a mode is of the others.
    snapshots: see `AttentionKind`.
    """

    name: str
    full: Child
    sliding: Child
    sliding_layers: tuple[int, ...]
    segmented: bool = False
    by_mode: Mapping[ForwardMode, AttentionKind] = field(default_factory=dict)
    snapshots: Snapshots | None = None

    def for_mode(self, mode: ForwardMode) -> AttentionBackend:
        """The one that serves a launch of that mode."""
        kind = self.by_mode.get(mode)
        if kind is None:
            return self
        return AttentionBackend(
            self.name, kind.full, kind.sliding, self.sliding_layers, kind.segmented, snapshots=kind.snapshots
        )

    def children(self) -> tuple[Child, ...]:
        return (self.full, self.sliding) if self.sliding_layers else (self.full,)

    def for_draft(self) -> AttentionBackend:
        """That of a draft's own launch: a draft has full layers only, so the sliding child is not asked."""
        return replace(self.for_mode(ForwardMode.DRAFT_EXTEND), sliding_layers=())

    def shared_read_ends(self, mode: ForwardMode) -> SharedReadEnds:
        """The latest of the children that serve the mode (law 9)."""
        return SharedReadEnds.latest(c.shared_read_ends(mode) for c in self.for_mode(mode).children())

    def last_reader(self, mode: ForwardMode) -> str | None:
        """The stage declared to be the last shared reader in the replay; None where the reads do not end there."""
        if self.shared_read_ends(mode) is not SharedReadEnds.IN_GRAPH:
            return None
        sliding = self.for_mode(mode).sliding.place
        if self.sliding_layers and sliding is MetadataPlace.EACH_LAYER:
            return f"swa_translate.{self.sliding_layers[-1]}"
        if self.sliding_layers and sliding is MetadataPlace.REPLAY_HEAD:
            return "swa_translate"
        return "page_table"


@dataclass(frozen=True, slots=True)
class AttentionKind:
    """A way to serve the attention of any model: what full layers and what sliding layers get. See `AttentionBackend`.

    snapshots: a declaration for one batch. Asked once a launch, when its batch is loaded and before its replay: True where it
    took private copies of all that this launch reads, so that its shared reads are over, whatever is declared for the mode. The
    answer counts for that launch alone, and nothing is kept of it: a launch that fails, here or later, leaves nothing that the
    next could go by (public sources: sglang #35947, #38554).
    """

    name: str
    full: Child
    sliding: Child
    segmented: bool = False
    by_mode: Mapping[ForwardMode, AttentionKind] = field(default_factory=dict)
    snapshots: Snapshots | None = None


_SNAPSHOT = AttentionKind("snapshot", SNAPSHOT, SNAPSHOT)
_PREFILL = (ForwardMode.EXTEND, ForwardMode.MIXED)
_BUILT_IN = (
    _SNAPSHOT,
    AttentionKind("captured", CAPTURED, CAPTURED),
    AttentionKind("live", SNAPSHOT, LIVE),
    AttentionKind("unknown", SNAPSHOT, UNKNOWN),
    AttentionKind("composite", SNAPSHOT, CAPTURED),
    AttentionKind("segmented", CAPTURED, CAPTURED, segmented=True),  # the last read is in the first segment
    AttentionKind("rereading", SNAPSHOT, REREADING, segmented=True),  # each segment that slides reads the map again
    AttentionKind("hybrid", CAPTURED, CAPTURED, by_mode=dict.fromkeys(_PREFILL, _SNAPSHOT)),
)
_REGISTRY = {kind.name: kind for kind in _BUILT_IN}


def register_attention(kind: AttentionKind) -> None:
    """Add a kind for this process. A second one of the same name is refused with InputError."""
    if kind.name in attention_names():
        raise InputError(f"attention kind '{kind.name}' is registered already; choose another name")
    _REGISTRY[kind.name] = kind


def attention_names() -> tuple[str, ...]:
    """All that `make_attention` knows: built-in, registered, and of installed packages, none of which is loaded."""
    return tuple(dict.fromkeys((*_REGISTRY, *(entry.name for entry in entry_points(group=GROUP)))))


def make_attention(name: str, sliding_layers: tuple[int, ...]) -> AttentionBackend:
    """That kind, of a model whose layers of these indices slide. InputError: no such kind, or its package is broken."""
    kind = _REGISTRY.get(name)
    if kind is None:  # asking for the entry points of all packages takes tens of milliseconds
        theirs = (load_entry(entry, AttentionKind) for entry in entry_points(group=GROUP) if entry.name == name)
        kind = next(theirs, None)
    if kind is None:
        raise InputError(f"unknown attention backend '{name}'; choose one of: {', '.join(attention_names())}")
    return AttentionBackend(name, kind.full, kind.sliding, sliding_layers, kind.segmented, kind.by_mode, kind.snapshots)
