"""plant(): find where a function's shared reads end, and capture it with the marker there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from warfence.core.errors import InputError
from warfence_torch.tools.accesses import Declared, tensors
from warfence_torch.tools.planting.host import plant_host
from warfence_torch.tools.planting.planted import Planted
from warfence_torch.tools.planting.shared import SharedTensors, named
from warfence_torch.tools.planting.trace import Subject


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
    access, by "library::operation"; those not declared count as readers where a trace decides (on the CPU).

    On CUDA the function is captured as it runs, compiled code as compiled code, and the graph's nodes say who reads, whoever
    launched them; a trace only names their lines. On the CPU it is traced as it was written. Both check what they found: the
    tables are overwritten behind the marker with other values out of the same table, and no result may change. Where one
    does, the marker stands behind the reader that this shows (CUDA), or at the end (CPU), and the report says so.

    The function runs here two to five times, under `torch.no_grad()`: what it accumulates, it accumulates then too. No
    other lane may use its tensors meanwhile.

    Raises InputError, with the operation or node and the code's lines, for a function that writes a shared tensor, returns a
    view of one or what holds tensors out of sight, does not do the same twice or in a lane's thread, or cannot be captured;
    and for shared tensors that overlap.
    """
    if not callable(fn):
        raise InputError(f"plant() got a {type(fn).__name__} to capture; give a function: plant(step, shared=[table])")
    by_name = named(shared)
    found = SharedTensors(by_name)
    given = [*tensors(tree_leaves([args, dict(kwargs or {}), by_name]))]
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
        return plant_host(subject, by_name)

    from warfence_torch.tools.planting.cuda import plant_cuda

    return plant_cuda(subject, by_name, stream or torch.cuda.Stream(), pool, [])
