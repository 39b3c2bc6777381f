"""Attention backends: where their metadata is made, and where, per mode, they declare that their shared reads end.

A model has full layers and sliding layers; each kind of layer is served by a child. A child makes its metadata while
the batch is loaded (`snapshot`), at the head of the captured forward (`captured`), or looks the live table up before
each layer (`live`). A composite answers with the latest of the children that the model uses (law 9; public source:
sglang #34982).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode, SharedReadEnds


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
    """

    name: str
    full: Child
    sliding: Child
    sliding_layers: tuple[int, ...]
    segmented: bool = False

    def children(self) -> tuple[Child, ...]:
        return (self.full, self.sliding) if self.sliding_layers else (self.full,)

    def for_draft(self) -> AttentionBackend:
        """That of a draft's own launch: a draft has full layers only, so the sliding child is not asked."""
        return replace(self, sliding_layers=())

    def shared_read_ends(self, mode: ForwardMode) -> SharedReadEnds:
        """The latest of the children (law 9)."""
        return SharedReadEnds.latest(c.shared_read_ends(mode) for c in self.children())

    def last_reader(self, mode: ForwardMode) -> str | None:
        """The stage declared to be the last shared reader in the replay; None where the reads do not end there."""
        if self.shared_read_ends(mode) is not SharedReadEnds.IN_GRAPH:
            return None
        if self.sliding_layers and self.sliding.place is MetadataPlace.EACH_LAYER:
            return f"swa_translate.{self.sliding_layers[-1]}"
        if self.sliding_layers and self.sliding.place is MetadataPlace.REPLAY_HEAD:
            return "swa_translate"
        return "page_table"


_KINDS: dict[str, tuple[Child, Child, bool]] = {
    "snapshot": (SNAPSHOT, SNAPSHOT, False),
    "captured": (CAPTURED, CAPTURED, False),
    "live": (SNAPSHOT, LIVE, False),
    "unknown": (SNAPSHOT, UNKNOWN, False),
    "composite": (SNAPSHOT, CAPTURED, False),
    "segmented": (CAPTURED, CAPTURED, True),  # the last read is in the first segment
    "rereading": (SNAPSHOT, REREADING, True),  # every segment with a sliding layer reads the live map again
}

KINDS = tuple(_KINDS)


def make_attention(name: str, sliding_layers: tuple[int, ...]) -> AttentionBackend:
    """The attention backend of that name; InputError with the known names otherwise."""
    if name not in _KINDS:
        raise InputError(f"unknown attention backend '{name}'; choose one of: {', '.join(_KINDS)}")
    full, sliding, segmented = _KINDS[name]
    return AttentionBackend(name, full, sliding, sliding_layers, segmented)
