"""The watched memory: named ranges of addresses, counted in cells.

By address, not by storage or tensor: a view, a slice, a numpy array and a tensor made from it all meet here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warfence.core.errors import InputError
from warfence_torch.tools.accesses import PLAIN

MOST_KEPT = 4096  # storages of which it is remembered whether they are watched
Watchable = Tensor | np.ndarray
Given = Mapping[str, Watchable] | Sequence[Watchable]


class Region(NamedTuple):
    """Addresses [begin, end) known by one name; `itemsize` bytes are a cell. device: no host memory."""

    begin: int
    end: int
    itemsize: int
    name: str
    device: bool


BLOCK = Region(0, 0, 1, "device memory", device=True)


class Memory:
    """All regions of one watch. It keeps what was given alive, so that no address changes its meaning.

    blocks: all other memory of CUDA devices is one more region, BLOCK, whose cells are the bytes by address: so a block
    that the allocator hands on is the same cells.
    """

    def __init__(self, shared: Given, host: Given, blocks: bool, later: bool = False) -> None:
        """later: more comes with `add`. InputError when there is nothing, when names or addresses meet."""
        named = [*_named(shared, "shared"), *_named(host, "host")]
        if not named and not blocks and not later:
            raise InputError("nothing to watch; give tensors as shared={name: tensor} or host={name: tensor or array}")
        self.blocks = blocks
        self._left_out: set[int] = set()
        self._kept = [one for _, one in named]
        self._regions = sorted(_region(name, one) for name, one in named)
        self._meets = lru_cache(MOST_KEPT)(self._any_cell)
        self._settle()

    def add(self, name: str, one: Watchable) -> None:
        """Watch this memory too, from here on. InputError as for the first ones; nothing is added then."""
        before = self._regions
        self._regions = sorted([*before, _region(name, one)])
        try:
            self._settle()
        except InputError:
            self._regions = before
            raise
        self._kept.append(one)

    def _settle(self) -> None:
        """Order and check the regions; what was remembered of storages is void."""
        names = [region.name for region in self._regions]
        if len(set(names)) < len(names):
            raise InputError(f"two watched tensors have one name; names given: {', '.join(sorted(names))}")
        for a, b in zip(self._regions, self._regions[1:], strict=False):
            if b.begin < a.end:
                raise InputError(
                    f"'{a.name}' and '{b.name}' overlap by {min(a.end, b.end) - b.begin} bytes; memory is watched under one"
                    f" name: give the tensor that covers both"
                )
        self._begins = [region.begin for region in self._regions]
        self._meets.cache_clear()

    def meets(self, t: Tensor) -> bool:
        """Whether a tensor's storage lies in watched memory, or might (where torch does not say where it lies)."""
        if type(t) not in PLAIN or t.layout is not torch.strided or (self.blocks and t.is_cuda):
            return True
        storage = t.untyped_storage()
        return self._meets(storage.data_ptr(), storage.nbytes())

    def _any_cell(self, begin: int, size: int) -> bool:
        return any(True for _ in self.cells(begin, begin + size))

    def cells(self, begin: int, end: int) -> Iterator[tuple[Region, int, int]]:
        """(region, first cell, cell behind the last) of each region that addresses [begin, end) meet."""
        at = max(bisect_right(self._begins, begin) - 1, 0)
        while at < len(self._regions) and self._regions[at].begin < end:
            region = self._regions[at]
            first, last = max(begin, region.begin) - region.begin, min(end, region.end) - region.begin
            if first < last:
                yield region, first // region.itemsize, -(-last // region.itemsize)
            at += 1

    def leave_out(self, storage: int) -> None:
        """Of a block on which a stream was recorded the allocator itself waits before it hands it on: no more of it."""
        self._left_out.add(storage)

    def cells_of_block(self, storage: int, begin: int, end: int) -> Iterator[tuple[Region, int, int]]:
        """As `cells`, for bytes [begin, end) of device memory that may be without a name."""
        named = list(self.cells(storage + begin, storage + end))
        if named or storage in self._left_out:
            yield from named
        else:
            yield BLOCK, storage + begin, storage + end

    def region(self, name: str) -> Region:
        """By name. InputError names those there are."""
        for region in self._regions:
            if region.name == name:
                return region
        raise InputError(f"'{name}' is not watched; watched: {', '.join(region.name for region in self._regions)}")

    @property
    def on_host(self) -> list[str]:
        return [region.name for region in self._regions if not region.device]


def _named(given: Given, kind: str) -> list[tuple[str, Watchable]]:
    if isinstance(given, Mapping):
        return list(given.items())
    if not isinstance(given, (list, tuple)):
        raise InputError(
            f"{kind} is of type {type(given).__name__}; give the tensors in a list, or by name: {kind}={{'table': table}}"
        )
    return [(f"{kind} {number}", one) for number, one in enumerate(given)]


def _region(name: str, one: Watchable) -> Region:
    if isinstance(one, np.ndarray):
        begin, end = np.lib.array_utils.byte_bounds(one)
        itemsize, device = one.itemsize, False
    elif isinstance(one, Tensor):
        begin, itemsize, device = one.data_ptr(), one.element_size(), one.is_cuda
        span = sum((size - 1) * stride for size, stride in zip(one.shape, one.stride(), strict=True)) + 1
        end = begin + span * itemsize if one.numel() else begin
    else:
        raise InputError(f"'{name}' is a {type(one).__name__}; what can be watched is a tensor or a numpy array")
    if begin == 0 or begin == end:
        raise InputError(f"'{name}' has no memory (empty or meta); leave it out")
    return Region(begin, end, itemsize, name, device)
