"""One launch's batch on the host, packed so that it travels in one transfer.

Every field lies in one vector of 32-bit words; a backend moves the words once and views the fields. Rows are padded to
the bucket: a padding row reads request row 0 and writes KV slot 0, both reserved, so its results are finite and unused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

import numpy as np
from jaxtyping import Int32

INT, FLOAT = "int32", "float32"


@dataclass(frozen=True, slots=True)
class Field:
    """Where one batch field lies in the words. `offset` and sizes are in 32-bit words."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class BatchLayout:
    """Shapes of a batch of `rows` requests with up to `queries` new tokens each.

    draws: random numbers a row brings; more than one where the host does not know yet at which position the row stands.
    """

    rows: int
    queries: int
    draws: int = 1
    fields: dict[str, Field] = field(init=False, hash=False, compare=False)
    words: int = field(init=False, hash=False, compare=False)

    def __post_init__(self) -> None:
        b, q = self.rows, self.queries
        shapes: list[tuple[str, tuple[int, ...], str]] = [
            ("input_ids", (b, q), INT),  # tokens that the host knows
            ("out_cache_loc", (b, q), INT),  # full KV slot of each new token
            ("req_pool_indices", (b,), INT),  # row of req_to_token and of the relay
            ("prefix_lens", (b,), INT),  # tokens that lie in the cache already
            ("extend_lens", (b,), INT),  # new tokens of this launch, 1..queries
            ("from_relay", (b,), INT),  # 1: the first token comes from the device relay, not from the host
            ("temperature", (b,), FLOAT),
            ("top_p", (b,), FLOAT),
            ("uniform", (b, self.draws), FLOAT),  # the draws for the tokens at prefix_lens + extend_lens and on
        ]
        fields: dict[str, Field] = {}
        offset = 0
        for name, shape, dtype in shapes:
            fields[name] = Field(offset, shape, dtype)
            offset += prod(shape)
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "words", offset)


@dataclass(frozen=True, slots=True)
class BatchRow:
    """What one request brings to a launch."""

    row: int
    prefix_len: int
    input_ids: tuple[int, ...]
    out_cache_loc: tuple[int, ...]
    from_relay: bool
    temperature: float
    top_p: float
    uniform: tuple[float, ...]
    extend_len: int = 0  # new tokens; 0: as many as there are locations


@dataclass(frozen=True, slots=True)
class Batch:
    """A packed batch. `words` is never written after packing: a lane may read it until its launch is over (law 12)."""

    layout: BatchLayout
    words: Int32[np.ndarray, " words"]

    def view(self, name: str) -> np.ndarray:
        """One field as a view of the words: int32 or float32, in its shape."""
        f = self.layout.fields[name]
        flat = self.words[f.offset : f.offset + f.size]
        return (flat.view(np.float32) if f.dtype == FLOAT else flat).reshape(f.shape)


def pack(layout: BatchLayout, rows: Iterable[BatchRow]) -> Batch:
    """Pack request rows into a fresh vector; rows beyond the given ones are padding (row 0, slot 0, one token)."""
    words = np.zeros(layout.words, dtype=np.int32)
    batch = Batch(layout, words)
    views = {name: batch.view(name) for name in layout.fields}
    views["extend_lens"][:] = 1
    views["top_p"][:] = 1.0
    for i, r in enumerate(rows):
        locations = len(r.out_cache_loc)
        views["input_ids"][i, : len(r.input_ids)] = r.input_ids
        views["out_cache_loc"][i, :locations] = r.out_cache_loc
        views["req_pool_indices"][i] = r.row
        views["prefix_lens"][i] = r.prefix_len
        views["extend_lens"][i] = r.extend_len or locations
        views["from_relay"][i] = r.from_relay
        views["temperature"][i] = r.temperature
        views["top_p"][i] = r.top_p
        views["uniform"][i, : len(r.uniform)] = r.uniform
    words.flags.writeable = False
    return batch
