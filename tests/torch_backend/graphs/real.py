"""Code that nobody here wrote: decode steps of transformers' models, over a static cache and over a paged table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

ROWS, LENGTH, PAGES, LAYERS = 2, 32, 256, 3
SIZES = {
    "vocab_size": 512, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 4096,
}  # fmt: skip
NAMES = ("Llama", "Mistral", "Qwen2")


def model(name: str, attention: str = "sdpa") -> Any:
    """A small model with random weights."""
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SIZES)
    config._attn_implementation = attention
    return getattr(transformers, f"{name}ForCausalLM")(config).to("cuda").eval()


def paged_step(name: str, compiled: bool) -> tuple[Callable[[], Tensor], dict[str, Tensor], list[Tensor]]:
    """A decode step whose attention reads a page table in each layer; the table; the state (the pools of pages)."""
    from transformers import AttentionInterface

    table = torch.randperm(PAGES, device="cuda")[: ROWS * LENGTH].view(ROWS, LENGTH).to(torch.int32)
    slot = torch.arange(PAGES - ROWS, PAGES, device="cuda")
    pools = [torch.randn(2, PAGES, 2, 64, device="cuda") for _ in range(LAYERS)]

    def attention(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, **_: Any) -> tuple[Tensor, None]:
        pool = pools[module.layer_idx]
        pool[0].index_copy_(0, slot, key[:, :, -1])
        pool[1].index_copy_(0, slot, value[:, :, -1])
        k, v = (torch.cat([part[table], part[slot][:, None]], 1).transpose(1, 2) for part in pool)
        out = torch.nn.functional.scaled_dot_product_attention(query, k, v, enable_gqa=True)
        return out.transpose(1, 2).contiguous(), None

    AttentionInterface.register("warfence_paged", attention)
    network = model(name, "warfence_paged")
    tokens = torch.tensor([[3], [5]], device="cuda")
    positions = torch.full((ROWS, 1), LENGTH, device="cuda")

    def step() -> Tensor:
        return network(input_ids=tokens, position_ids=positions, use_cache=False).logits

    return (torch.compile(step) if compiled else step), {"page_table": table}, pools


def static_step(name: str) -> tuple[Callable[[], Tensor], dict[str, Tensor], list[Tensor]]:
    """A decode step over a static cache, whose token ids the scheduler writes; all that the cache holds is state."""
    from transformers import StaticCache

    network = model(name)
    cache = StaticCache(config=network.config, max_cache_len=2048)
    tokens = torch.tensor([[3], [5]], device="cuda")
    positions = torch.tensor([7], device="cuda")
    prompt = torch.randint(0, 512, (ROWS, 7), device="cuda")
    with torch.no_grad():
        network(input_ids=prompt, past_key_values=cache, cache_position=torch.arange(7, device="cuda"))

    def step() -> Tensor:
        return network(input_ids=tokens, past_key_values=cache, cache_position=positions).logits

    state = [t for layer in cache.layers for t in vars(layer).values() if isinstance(t, Tensor)]
    return step, {"tokens": tokens}, state
