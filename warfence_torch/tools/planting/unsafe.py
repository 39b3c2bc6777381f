"""What a captured graph cannot hold: operations that make the host wait for a value, refused on the CPU likewise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from warfence_torch.tools.accesses import rule_of, tensors

MASKS = (torch.bool, torch.uint8)
COPIES = {"copy_", "_to_copy", "to", "_foreach_copy_"}
HOST_READS = {"aten::is_nonzero", "aten::nonzero_numpy"}  # composites of those that torch tags


def why_unsafe(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Why this operation cannot be captured; '' where nothing is known against it."""
    rule = rule_of(func)
    short = rule.name.split("::")[-1]
    given = dict(zip(rule.names, args, strict=False)) | dict(kwargs)
    if short in ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"):
        if not any(t.dtype in MASKS for t in tensors(given["indices"])):
            return ""
        values = given.get("values")
        filled = isinstance(values, Tensor) and values.numel() == 1 and not given.get("accumulate")
        return "" if filled else "the host counts the cells of a mask; use torch.where, or indices"
    tags = getattr(func, "tags", ())
    if torch.Tag.data_dependent_output in tags or rule.name in HOST_READS:
        return "the host reads a value; keep it on the device"
    if torch.Tag.dynamic_output_shape in tags and given.get("output_size") is None:
        return "the shape of its result depends on values"
    return ""


def why_waiting(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> str:
    """Why the host waits for this copy, which cannot be captured; '' for any other operation."""
    rule = rule_of(func)
    if rule.name.split("::")[-1] not in COPIES:
        return ""
    given = dict(zip(rule.names, args, strict=False)) | dict(kwargs)
    places = {t.device.type for t in tensors([*given.values(), out])}
    if given.get("non_blocking") or places != {"cpu", "cuda"}:
        return ""
    return "the host waits for a copy between host and device; use pinned memory and non_blocking=True"
