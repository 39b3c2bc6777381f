"""The shared tensors of one planted function, found by address: any view, slice or alias of them counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor

from warfence.core.errors import InputError
from warfence.parity.boundary import Access
from warfence.parity.graph import Span, Table
from warfence_torch.tools.accesses import Touch, no_interval, touch


@dataclass(frozen=True, slots=True)
class SharedTensor:
    """One of them. begin, end: its bytes [begin, end), as addresses. size: bytes of one element. around: its whole storage."""

    name: str
    begin: int
    end: int
    size: int
    around: Span

    def cells(self, begin: int, end: int) -> Access | None:
        """The elements within the bytes [begin, end); None where there is none."""
        begin, end = max(begin, self.begin) - self.begin, min(end, self.end) - self.begin
        return Access(self.name, begin // self.size, -(-end // self.size)) if begin < end else None


class SharedTensors:
    """Names and addresses. InputError when there is none, when one has no memory of its own, when two overlap."""

    def __init__(self, shared: Iterable[Tensor] | Mapping[str, Tensor]) -> None:
        self._all = sorted((_located(name, t) for name, t in named(shared).items()), key=lambda s: s.begin)
        for one, other in zip(self._all, self._all[1:], strict=False):
            if other.begin < one.end:
                raise InputError(
                    f"shared tensors '{one.name}' and '{other.name}' overlap in memory by "
                    f"{min(one.end, other.end) - other.begin} bytes, so a write to one is a write to both; "
                    f"name the tensor that holds both"
                )

    def tables(self) -> list[Table]:
        """Where they lie, for who looks at a captured graph."""
        return [Table(s.name, s.begin, s.end, s.size, s.around) for s in self._all]

    def cells(self, touched: Iterable[Touch], kind: str) -> tuple[Access, ...]:
        """The shared cells among the touched memory, of one kind ("read" or "write"), without repetition."""
        found = [s.cells(t.storage + t.begin, t.storage + t.end) for t in touched if t.kind == kind for s in self._all]
        return tuple(dict.fromkeys(a for a in found if a is not None))

    def of(self, t: Tensor) -> tuple[Access, ...]:
        """The shared cells that a tensor lies on."""
        return () if no_interval(t) else self.cells(touch("read", t), "read")


def named(shared: Iterable[Tensor] | Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The shared tensors by name. InputError when none is given, or one without a list around it."""
    if isinstance(shared, Tensor):
        raise InputError("shared is a tensor; give the tensors in a list, or by name: shared={'table': table}")
    if not isinstance(shared, (Mapping, Iterable)):
        raise InputError(
            f"shared is of type {type(shared).__name__}; give the tensors in a list, or by name: shared={{'table': table}}"
        )
    by_name = dict(shared) if isinstance(shared, Mapping) else {f"shared[{i}]": t for i, t in enumerate(shared)}
    if not by_name:
        raise InputError("no shared tensor is given; name those that the scheduler writes: shared=[table]")
    return by_name


def _located(name: str, t: object) -> SharedTensor:
    if not isinstance(t, Tensor):
        raise InputError(f"shared '{name}' is of type {type(t).__name__}; a tensor is needed")
    if why := no_interval(t):
        raise InputError(f"shared '{name}' is {why}; a plain strided tensor is needed")
    if not (touched := touch("read", t)):
        raise InputError(f"shared '{name}' is empty, so nobody can write or read it; leave it out")
    (_, base, begin, end, size), bytes_of = touched[0], t.untyped_storage().nbytes()
    return SharedTensor(name, base + begin, base + end, size, Span(base, base + bytes_of))
