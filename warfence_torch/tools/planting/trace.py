"""One pass over a function: every operation that torch dispatches, in order, with its shared accesses.

Every later pass (the second one, the capture, a replay on the CPU) is a trace too, held against the first: the marker
stands at a position, and a position means something only while the sequence is the same.

Prior art: torch.cuda._sanitizer looks at tensors by pointer, outside of replays. Not seen here, and so said in the report:
launches of other threads, and kernels launched without torch from a pointer that was taken before the function began. An
operation is taken to run on the stream that is current. A compiled function is traced as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from warfence.core.errors import InputError
from warfence.parity.boundary import Operation
from warfence_torch.tools.accesses import Declared, Touch, accesses, key, no_interval, tensors
from warfence_torch.tools.callers import caller_lines
from warfence_torch.tools.compiled import as_written
from warfence_torch.tools.planting.pointers import TAKES_VALUES, hearing
from warfence_torch.tools.planting.shared import SharedTensors
from warfence_torch.tools.planting.stages import current_stage
from warfence_torch.tools.planting.unsafe import why_unsafe, why_waiting

END = "the end of the function"


class Escapes(InputError):
    """Something runs while the function is captured, but no replay does it again."""


class Traced(NamedTuple):
    """One operation. touched: kind, first byte and end of all accesses, within their storages."""

    operation: Operation
    touched: tuple[tuple[str, int, int], ...]

    def same_as(self, other: Traced) -> bool:
        """Whether a second pass did the same: lines of code may differ, accesses may not."""
        return self._replace(operation=self.operation._replace(where="")) == other._replace(
            operation=other.operation._replace(where="")
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """What is traced: a function without arguments, its shared tensors, the accesses that the user declares."""

    fn: Callable[[], Any]
    shared: SharedTensors
    declared: Mapping[str, Declared]
    device: str
    guard: Callable[[], Any]  # torch.no_grad, or torch.inference_mode where a tensor was made in it


@dataclass(slots=True)
class Pass:
    """Runs a subject once. expected: the first pass, if this is a later one. ahead, behind: called around each operation."""

    subject: Subject
    expected: list[Traced] | None = None
    behind: Callable[[int], None] = lambda position: None
    ahead: Callable[[], None] = lambda: None
    seen: list[Traced] = field(default_factory=list)
    pointers: list[str] = field(default_factory=list)  # where pointers of shared tensors were taken
    at: tuple[str, Operation | None] = ("at", None)  # "in" an operation or "behind" it
    inside: bool = False  # an operation is running; what it does with pointers is its own matter
    made: set[int] = field(default_factory=set)  # storages that came to be in this pass
    state: dict[int, Tensor] = field(default_factory=dict)  # all others that it writes, as bytes

    def run(self) -> Any:
        """What the function returns. InputError when it cannot be captured, or does not do what it did before."""
        with self.subject.guard(), as_written(), hearing(self._taken), _Operations(self):
            out = self.subject.fn()
        if self.pointers:
            position, where = len(self.seen), " and ".join(dict.fromkeys(self.pointers))
            unseen = f"{where}, and what is launched with it cannot be seen"
            self.add(Traced(Operation(position, END, unseen=unseen), ()))
        if self.expected is not None and len(self.seen) < len(self.expected):
            missing = self.expected[len(self.seen)].operation
            raise InputError(f"{UNSTEADY}: this pass ends before {missing}, which the first one had; {REMEDY}")
        return out

    def _taken(self, name: str, t: Tensor) -> None:
        """Somebody takes the address or the values of a tensor, which is nothing that torch dispatches."""
        if self.inside:
            return
        where = caller_lines(Pass.run.__code__)
        if name in TAKES_VALUES:
            raise InputError(f"{name}() at {where} cannot be captured: the host reads values; keep them on the device")
        if on := self.subject.shared.of(t):
            self.pointers.append(f"{name}() of {on[0]} was taken at {where}")

    def where(self) -> str:
        """How far it is: in an operation, behind one, or at the start."""
        relation, op = self.at
        return f"{relation} {op or 'the start'}"

    def add(self, traced: Traced) -> None:
        """One more operation has run."""
        position = len(self.seen)
        self.seen.append(traced)
        self.at = "behind", traced.operation
        if self.expected is not None:
            if position >= len(self.expected):
                raise InputError(f"{UNSTEADY}: {traced.operation} came after the end of the first pass; {REMEDY}")
            if not traced.same_as(self.expected[position]):
                raise InputError(
                    f"{UNSTEADY}: the first pass had {_told(self.expected[position])}, this pass {_told(traced)}; {REMEDY}"
                )
        self.behind(position)


UNSTEADY = "the function does not do the same twice, so no position in it can be trusted"
REMEDY = "take what changes (counters, caches, random choices of the host) out of it"


def _told(traced: Traced) -> str:
    touched = ", ".join(f"{kind}s [{begin}:{end}]" for kind, begin, end in traced.touched)
    return f"{traced.operation} ({touched or 'no access'}, in bytes)"


class _Operations(TorchDispatchMode):
    supports_higher_order_operators = True  # cond and the like are one operation, which cannot be seen

    def __init__(self, to: Pass) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._pass = to

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        to, kwargs = self._pass, kwargs or {}
        subject = to.subject
        op = Operation(len(to.seen), str(func), current_stage(), caller_lines(Pass.run.__code__))
        if why := why_unsafe(func, args, kwargs):
            raise InputError(f"{op} cannot be captured: {why}")
        to.ahead()
        to.inside, to.at = True, ("in", op)
        try:
            out = func(*args, **kwargs)
            touched, unseen = accesses(func, args, kwargs, out, subject.declared)
            _remember(to, touched, [*tensors(list(args)), *tensors(list(kwargs.values()))], list(tensors(out)))
        finally:
            to.inside = False
        reads, writes = (subject.shared.cells(touched, kind) for kind in ("read", "write"))
        op = op._replace(reads=reads, writes=writes, unseen=unseen)
        if subject.device == "cuda":
            if why := why_waiting(func, args, kwargs, out):
                raise InputError(f"{op} cannot be captured: {why}")
            _check_on_device(op, [*tensors(list(args)), *tensors(list(kwargs.values())), *tensors(out)])
        to.add(Traced(op, tuple((t.kind, t.begin, t.end) for t in touched)))
        return out


def _remember(to: Pass, touched: list[Touch], given: list[Tensor], results: list[Tensor]) -> None:
    """Which memory from before the pass an operation writes: the function's state."""
    written = {t.storage for t in touched if t.kind == "write"}
    if not written:
        return
    known = {key(t): t for t in given if not no_interval(t)}
    to.made |= {key(t) for t in results if not no_interval(t)} - set(known)
    for storage in written & set(known) - to.made - set(to.state):
        whole = known[storage].untyped_storage()
        to.state[storage] = torch.empty(0, dtype=torch.uint8, device=whole.device).set_(whole)


def _check_on_device(op: Operation, of: list[Tensor]) -> None:
    """Refuse a read that runs while capturing, but that no replay does again."""
    if op.reads and all(t.device.type == "cpu" for t in of):
        raise Escapes(f"{op} reads a shared tensor on the host, where no graph replays it; copy it to the device")
