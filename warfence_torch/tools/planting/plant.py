"""plant(): trace a function twice, find where its shared reads end, and capture it with the marker there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from warfence.core.errors import InputError
from warfence.parity.boundary import find
from warfence_torch.tools.accesses import Declared, tensors
from warfence_torch.tools.planting.host import HostPlanted
from warfence_torch.tools.planting.planted import Planted
from warfence_torch.tools.planting.shared import SharedTensors
from warfence_torch.tools.planting.trace import Pass, Subject, Traced


def plant(
    fn: Callable[..., Any],
    shared: Iterable[Tensor] | Mapping[str, Tensor],
    *,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    device: str | None = None,
    stream: torch.cuda.Stream | None = None,
    pool: object = None,
    declared: Mapping[str, Declared] | None = None,
) -> Planted:
    """Capture `fn(*args, **kwargs)`, a function over static tensors, with its marker behind its last read of a shared one.

    shared: the tensors that the scheduler writes, in a list or by name. device: "cpu" or "cuda"; left out, "cuda" when an
    argument or shared tensor lies there. stream, pool: of the capture (CUDA). declared: what operations of other libraries
    access, by "library::operation"; those not declared count as readers.

    The function runs here twice, and on CUDA once more to be captured: what it accumulates, it accumulates then too. No
    other lane may use its tensors meanwhile.

    Raises InputError, with the operation and the code's lines, for a function that writes a shared tensor, returns a view
    of one, does not do the same in both passes, or cannot be captured; and for shared tensors that overlap.
    """
    shared = dict(shared) if isinstance(shared, Mapping) else list(shared)
    found = SharedTensors(shared)
    given = [*tensors(tree_leaves([args, dict(kwargs or {}), shared]))]
    device = device or ("cuda" if any(t.is_cuda for t in given) else "cpu")
    if device not in ("cpu", "cuda"):
        raise InputError(f"plant() got device '{device}'; choose one of: cpu, cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("plant() is asked for CUDA, but torch.cuda.is_available() is False; use device='cpu'")
    if device == "cpu" and (stream is not None or pool is not None):
        raise InputError("plant() got a stream or a pool, which only CUDA has, but its tensors lie on the CPU")
    guard = torch.inference_mode if any(t.is_inference() for t in given) else torch.no_grad
    subject = Subject(partial(fn, *args, **(kwargs or {})), found, declared or {}, device, guard)
    if device == "cpu":
        trace, output = _trace_twice(subject)
        return HostPlanted(subject, find(t.operation for t in trace), trace, output, _notes(subject, trace))

    from warfence_torch.tools.planting.cuda import CudaPlanted

    stream = stream or torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        trace, _ = _trace_twice(subject)
    stream.synchronize()
    return CudaPlanted(subject, find(t.operation for t in trace), trace, stream, pool, _notes(subject, trace))


def _trace_twice(subject: Subject) -> tuple[list[Traced], Any]:
    """What the function does, and what it returned the second time."""
    first = Pass(subject)
    output = first.run()
    find(t.operation for t in first.seen)  # refuses writes, before anything runs again
    for i, t in enumerate(tensors(tree_leaves(output))):
        if on := subject.shared.of(t):
            raise InputError(
                f"result {i} of the function is a view of {on[0]}, which is shared: it would change under the reader's "
                f"hands; return a copy (clone())"
            )
    return first.seen, Pass(subject, first.seen).run()


def _notes(subject: Subject, trace: list[Traced]) -> list[str]:
    """What the user declared, and whether it came up."""
    names = {t.operation.name for t in trace}

    def seen(name: str) -> bool:
        return any(n.startswith(name.replace("::", ".") + ".") for n in names)

    return [
        f"declared by the user: {name} reads {d.reads}, writes {d.writes}" + ("" if seen(name) else " (never came up)")
        for name, d in subject.declared.items()
    ]
