"""The cells of one resource as a sorted map of disjoint intervals, each with the accesses that still matter there."""

from __future__ import annotations

from bisect import bisect_right

# Who touched an interval: the lane, its position there, and the place in the log. Plain, for there are millions.
Access = tuple[int, int, int]


class Interval:
    """One interval that always was accessed as a whole.

    reads: the last one of each lane since the last write. writes: the last write, and those that raced with it.
    """

    __slots__ = ("begin", "end", "reads", "writes")

    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end = begin, end
        self.writes: list[Access] = []
        self.reads: list[Access] = []

    def cut(self, at: int) -> Interval:
        """Shorten this one to [begin, at) and return the rest."""
        rest = Interval(at, self.end)
        rest.writes, rest.reads = self.writes[:], self.reads[:]
        self.end = at
        return rest


class Cells:
    """All intervals of one resource that were accessed so far."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._intervals: list[Interval] = []

    def covering(self, begin: int, end: int) -> list[Interval]:
        """The intervals that make up [begin, end), cut or made where needed."""
        at = bisect_right(self._begins, begin) - 1
        if at >= 0:
            found = self._intervals[at]
            if found.begin == begin and found.end == end:
                return [found]
            if found.begin < begin < found.end:
                self._insert(at + 1, found.cut(begin))
            if found.begin < begin:
                at += 1
        else:
            at = 0
        first = at
        while begin < end:
            following = self._intervals[at] if at < len(self._intervals) else None
            if following is None or following.begin > begin:
                self._insert(at, Interval(begin, end if following is None else min(end, following.begin)))
            elif following.end > end:
                self._insert(at + 1, following.cut(end))
            begin = self._intervals[at].end
            at += 1
        return self._intervals[first:at]

    def join(self, intervals: list[Interval]) -> None:
        """Make neighbours one again where the same accesses stand in both."""
        kept = [intervals[0]]
        for one in intervals[1:]:
            if one.writes == kept[-1].writes and one.reads == kept[-1].reads:
                kept[-1].end = one.end
            else:
                kept.append(one)
        if len(kept) < len(intervals):
            first = bisect_right(self._begins, intervals[0].begin) - 1
            self._begins[first : first + len(intervals)] = [one.begin for one in kept]
            self._intervals[first : first + len(intervals)] = kept

    def _insert(self, at: int, interval: Interval) -> None:
        self._begins.insert(at, interval.begin)
        self._intervals.insert(at, interval)
