"""Stages that several algorithms use."""

from __future__ import annotations

from collections.abc import Mapping

from warfence.core.modes import Region
from warfence.core.program import Stage
from warfence.serve.model.config import ModelConfig

DRAFT_TOKENS = "draft_tokens"


def sizes(config: ModelConfig) -> Mapping[str, object]:
    """What a kernel must know of a decoder layer of the model's sizes."""
    return {
        "heads": config.heads, "kv_heads": config.kv_heads, "head_dim": config.head_dim, "rope": config.rope,
        "eps": config.norm_eps,
    }  # fmt: skip


def keep_drafts() -> Stage:
    """Leave the proposals for the next verify."""
    takes = ("proposals", "req_pool_indices")
    return Stage("keep_drafts", Region.TAIL, "keep_drafts", takes=takes, state=(DRAFT_TOKENS,))
