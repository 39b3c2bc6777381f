"""Free lists on the host: request rows, KV slots, sliding-window slots. Last freed, first reused: reuse is at once.

Index 0 of every pool is reserved: padding rows read row 0, padding tokens and evicted map entries point at slot 0.
"""

from __future__ import annotations

from warfence.core.errors import CapacityError


class Pool:
    """A free list of the indices 1..size-1."""

    __slots__ = ("_free", "_used", "name", "peak", "recycled", "size")

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self._free = list(range(size - 1, 0, -1))
        self._used: set[int] = set()
        self.recycled = 0  # how many allocations gave out an index that had an owner before
        self.peak = 0

    @property
    def free_count(self) -> int:
        return len(self._free)

    def take(self) -> int:
        """One free index; CapacityError when there is none."""
        if not self._free:
            raise CapacityError(f"pool '{self.name}' has no free index left of {self.size - 1}")
        index = self._free.pop()
        # Indices are first handed out in ascending order, so anything at or below the peak had an owner before.
        self.recycled += index <= self.peak
        self.peak = max(self.peak, index)
        self._used.add(index)
        return index

    def give(self, index: int) -> None:
        """Return an index. Returning one that nobody owns is an error of the caller."""
        if index not in self._used:
            raise CapacityError(f"pool '{self.name}': index {index} was returned but nobody owns it")
        self._used.remove(index)
        self._free.append(index)
