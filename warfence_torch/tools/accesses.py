"""Which memory one dispatched operation reads and writes, as intervals of bytes, so views and slices count.

It goes by the operation's schema (what is mutated, what may be a view) and by the tensors themselves. An interval runs
from a tensor's first byte to behind its last: of an index or a scatter that is all that it might touch, and of a column
it holds the gaps too. What cannot be told is said, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from warfence.core.errors import InputError

SEEN = ("aten", "prims", "prim")
PLAIN = (Tensor, torch.nn.Parameter)
WRITE_ONLY = {
    "copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "index_copy_",
    "index_fill_", "masked_fill_", "scatter_", "_foreach_copy_", "_foreach_zero_",
}  # fmt: skip
EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
QUERIES = {
    "size", "sym_size", "stride", "sym_stride", "numel", "sym_numel", "dim", "storage_offset", "sym_storage_offset",
    "is_contiguous", "is_same_size", "is_pinned", "record_stream",
}  # fmt: skip


Verb = Literal["read", "write"]


class Touch(NamedTuple):
    """One access. kind: "read" or "write". storage: address of the storage's first byte, on the device or the host.

    begin, end: bytes [begin, end) of the storage. size: bytes of one element.
    """

    kind: Verb
    storage: int
    begin: int
    end: int
    size: int


class Declared(NamedTuple):
    """The accesses of an operation that cannot be seen: its arguments, by name or place, that it reads, and that it writes."""

    reads: tuple[str | int, ...] = ()
    writes: tuple[str | int, ...] = ()

    def named(self, rule: Rule) -> tuple[frozenset[str], frozenset[str]]:
        """Both by name. InputError when the operation has no such argument."""

        def name(argument: str | int) -> str:
            if isinstance(argument, int) and 0 <= argument < len(rule.names):
                return rule.names[argument]
            if argument not in rule.names:
                raise InputError(
                    f"'{rule.name}' is declared to access its argument {argument!r}, which it does not have; "
                    f"its arguments: {', '.join(rule.names)}"
                )
            return str(argument)

        return frozenset(map(name, self.reads)), frozenset(map(name, self.writes))


class Rule(NamedTuple):
    """What the schema says, by the names of arguments. makes: whether new results are written. unseen: why it is no use."""

    name: str
    names: tuple[str, ...]
    reads: frozenset[str]
    writes: frozenset[str]
    makes: bool
    unseen: str


def accesses(
    func: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    out: Any,
    declared: Mapping[str, Declared] | None = None,
) -> tuple[list[Touch], str]:
    """All that one operation touched, and why that cannot be told ('' where it can; else no touch is told).

    The operation is as `__torch_dispatch__` sees it: `out` is what `func(*args, **kwargs)` returned. `declared` is for
    operations of other libraries, by name without overload ("library::operation").
    """
    rule = rule_of(func)
    by_name = dict(zip(rule.names, args, strict=False)) | dict(kwargs)
    said = declared.get(rule.name) if declared else None
    if rule.unseen and said is None:
        return [], rule.unseen
    if said is not None:
        reads, writes = said.named(rule)
    else:
        reads, writes = rule.reads, rule.writes
    inputs = [(name, t) for name, value in by_name.items() for t in tensors(value)]
    results = list(tensors(out))
    for t in (*(t for _, t in inputs), *results):
        if why := no_interval(t):
            return [], why
    keys = {key(t) for _, t in inputs}
    made = [t for t in results if key(t) not in keys]
    if said is None and not writes and results and not made:
        return [], ""  # a view
    touched: list[Touch] = []
    for name, t in inputs:
        if name in writes:
            touched += touch("write", t)
        if name in reads:
            touched += touch("read", t)
    if rule.makes:
        for t in made:
            touched += touch("write", t)
    return touched, ""


@cache
def rule_of(func: Any) -> Rule:
    """What is the same for every call of one operation."""
    schema, none = getattr(func, "_schema", None), frozenset[str]()
    if schema is None:
        return Rule(str(func), (), none, none, False, f"'{func}' has no schema")
    names = tuple(a.name for a in schema.arguments)
    short = schema.name.split("::")[-1]
    unseen = ""
    if func.namespace not in SEEN:
        unseen = f"'{schema.name}' is of another library: declare what it reads and writes"
    if torch.Tag.inplace_view in func.tags or short in QUERIES:  # the shape alone changes, or is asked for
        return Rule(schema.name, names, none, none, False, unseen)
    written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    writes = frozenset(a.name for a in written)
    overwritten = frozenset(a.name for a in written if a.is_out or short in WRITE_ONLY)
    shape_only = short.endswith("_like") or short.startswith("new_")
    reads = none if shape_only else frozenset(names) - overwritten
    return Rule(schema.name, names, reads, writes, short not in EMPTY, unseen)


def tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in an argument or result: alone, or in lists and tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def no_interval(t: Tensor) -> str:
    """Why a tensor is not an interval of one storage; '' where it is."""
    if type(t) not in PLAIN:
        return f"a tensor of type {type(t).__name__}, which keeps its memory to itself"
    if t.is_nested:
        return "a nested tensor, whose parts lie anywhere in its memory"
    if t.layout is not torch.strided:
        return f"a tensor of layout {t.layout}"
    if t.device.type == "meta":
        return "a tensor on the meta device, which has no memory"
    return ""


def key(t: Tensor) -> int:
    """The address of the first byte of the tensor's storage; for an empty storage, which has none, the storage's own."""
    storage = t.untyped_storage()
    return storage.data_ptr() or -storage._cdata


def touch(kind: Verb, t: Tensor) -> list[Touch]:
    """The access of one tensor; none where it has no element."""
    if t.numel() == 0:
        return []
    size = t.element_size()
    first = int(t.storage_offset())
    last = first + sum(int(n - 1) * int(s) for n, s in zip(t.shape, t.stride(), strict=True))
    return [Touch(kind, key(t), first * size, (last + 1) * size, size)]
