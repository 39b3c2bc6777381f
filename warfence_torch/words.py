"""The fields of a batch as views of the words that they travel in."""

from __future__ import annotations

import torch
from jaxtyping import Int32
from torch import Tensor

from warfence.core.batch import FLOAT, BatchLayout


def field_views(layout: BatchLayout, words: Int32[Tensor, " words"]) -> dict[str, Tensor]:
    """Each field in its shape, int32 or float32, over the same memory."""
    views = {}
    for name, f in layout.fields.items():
        flat = words[f.offset : f.offset + f.size]
        views[name] = (flat.view(torch.float32) if f.dtype == FLOAT else flat).view(f.shape)
    return views
