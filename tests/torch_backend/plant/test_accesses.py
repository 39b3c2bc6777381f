"""What one dispatched operation touches: intervals, so views and slices count and disjoint ones do not meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from warfence.core.errors import InputError
from warfence_torch.tools.accesses import Declared, accesses, key

TABLE = torch.arange(24).reshape(4, 6)  # int64: a row is 48 bytes
OUT = torch.empty(4, dtype=torch.int64)
IDX = torch.tensor([1])
PART = torch.ones(2, 6, dtype=torch.int64)


@torch.library.custom_op("warfence_test::gather", mutates_args=("out",))
def gather(table: Tensor, out: Tensor) -> None:
    out.copy_(table.sum(1))


class Log(TorchDispatchMode):
    """All accesses of TABLE and OUT, as (kind, tensor, begin, end), and what could not be seen."""

    def __init__(self, declared: dict[str, Declared] | None = None) -> None:
        super().__init__()
        self.declared, self.touched, self.unseen = declared, [], []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        touched, unseen = accesses(func, args, kwargs or {}, out, self.declared)
        names = {key(TABLE): "table", key(OUT): "out"}
        self.touched += [(t.kind, names[t.storage], t.begin, t.end) for t in touched if t.storage in names]
        self.unseen += [unseen] if unseen else []
        return out


READ_ALL = [("read", "table", 0, 192)]
SEEN: dict[str, tuple[Callable[[], object], list[tuple[str, str, int, int]]]] = {
    "views": (lambda: (TABLE[1:3], TABLE.t(), TABLE.view(-1), TABLE.expand(2, 4, 6), TABLE.detach(), TABLE.split(2)), []),
    "a shape alone": (lambda: (torch.zeros_like(TABLE), TABLE.new_empty(3), torch.empty_like(TABLE), TABLE.size()), []),
    "a slice": (lambda: TABLE[1:3] + 1, [("read", "table", 48, 144)]),
    "a column, with its gaps": (lambda: TABLE[:, 2] + 1, [("read", "table", 16, 168)]),
    "a gather": (lambda: TABLE[IDX], READ_ALL),
    "a list of tensors": (lambda: torch.cat([PART, TABLE[:1]]), [("read", "table", 0, 48)]),
    "foreach": (lambda: torch._foreach_add([PART, TABLE[2:]], 1), [("read", "table", 96, 192)]),
    "nothing of it": (lambda: TABLE[2:2] + 1, []),
    "reshape, a view": (lambda: TABLE.reshape(-1), []),
    "reshape, a copy": (lambda: TABLE.t().reshape(-1), READ_ALL),
    "contiguous, a copy": (lambda: TABLE.t().contiguous(), READ_ALL),
    "a cast": (lambda: TABLE.float(), READ_ALL),
    "out=": (lambda: torch.sum(TABLE, 1, out=OUT), [*READ_ALL, ("write", "out", 0, 32)]),
    "in place": (lambda: OUT[1:].add_(1), [("write", "out", 8, 32), ("read", "out", 8, 32)]),
    "copy_": (lambda: OUT.copy_(TABLE[0, :4]), [("write", "out", 0, 32), ("read", "table", 0, 32)]),
    "assignment": (lambda: OUT.__setitem__(0, TABLE[0, 1]), [("write", "out", 0, 8), ("read", "table", 8, 16)]),
    "in place, of the shape": (lambda: OUT.unsqueeze_(0).squeeze_(0), []),
}  # fmt: skip


@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", SEEN)
def test_touched_is(name: str, guard: Callable[[], Any]) -> None:
    act, expected = SEEN[name]
    with guard(), Log() as log:
        act()
    assert log.touched == expected
    assert not log.unseen


def test_another_librarys_operation_is_unseen_until_it_is_declared() -> None:
    with torch.no_grad(), Log() as log:
        gather(TABLE, OUT)
    assert log.touched == []
    assert log.unseen == ["'warfence_test::gather' is of another library: declare what it reads and writes"]
    with torch.no_grad(), Log({"warfence_test::gather": Declared(reads=("table",), writes=(1,))}) as log:
        gather(TABLE, OUT)
    assert log.touched == [*READ_ALL, ("write", "out", 0, 32)]
    assert not log.unseen


def test_a_declared_argument_must_exist() -> None:
    with (
        pytest.raises(
            InputError, match="access its argument 'tabel', which it does not have; its arguments: table, out"
        ),
        torch.no_grad(),
        Log({"warfence_test::gather": Declared(reads=("tabel",))}),
    ):
        gather(TABLE, OUT)


def test_tensors_without_an_interval_are_unseen() -> None:
    with torch.no_grad(), Log() as log:
        TABLE.to_sparse()
        torch.empty(2, device="meta") + 1
    assert log.unseen == [
        "a tensor of layout torch.sparse_coo",
        *["a tensor on the meta device, which has no memory"] * 2,
    ]
