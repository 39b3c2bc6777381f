"""The decoder for training, in torch, with the parameter names of Hugging Face. Inference never imports this.

2.56 million parameters. Full and sliding layers alternate, so that a server for it needs both kinds of pages.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

CONFIG = {
    "name": "warfence-kjv-2.6m",
    "architectures": ["MinistralForCausalLM"],
    "model_type": "ministral",
    "dtype": "bfloat16",
    "vocab_size": 1024,
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 512,
    "layer_types": ["full_attention", "sliding_attention"] * 3,
    "sliding_window": 32,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": 0,
    "attention_dropout": 0.0,
}
HIDDEN, FFN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, CONTEXT, WINDOW = 192, 512, 6, 6, 2, 32, 512, 32


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding, rotate-half form: ``x`` [batch, heads, positions, head_dim]."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Block(nn.Module):
    """One layer: grouped-query attention and SwiGLU, each behind an RMSNorm, with dropout on what they add."""

    def __init__(self, sliding: bool, dropout: float) -> None:
        super().__init__()
        self.sliding, self.dropout = sliding, dropout
        self.input_layernorm = nn.RMSNorm(HIDDEN, eps=1e-5)
        self.post_attention_layernorm = nn.RMSNorm(HIDDEN, eps=1e-5)
        sizes = {"q_proj": HEADS, "k_proj": KV_HEADS, "v_proj": KV_HEADS}
        heads = {name: nn.Linear(HIDDEN, count * HEAD_DIM, bias=False) for name, count in sizes.items()}
        self.self_attn = nn.ModuleDict({**heads, "o_proj": nn.Linear(HEADS * HEAD_DIM, HIDDEN, bias=False)})
        self.mlp = nn.ModuleDict(
            {
                "gate_proj": nn.Linear(HIDDEN, FFN, bias=False),
                "up_proj": nn.Linear(HIDDEN, FFN, bias=False),
                "down_proj": nn.Linear(FFN, HIDDEN, bias=False),
            }
        )

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, band: Tensor) -> Tensor:
        """``x`` [batch, positions, hidden]; ``band`` [positions, positions] is True where a sliding layer sees."""
        batch, positions, _ = x.shape
        y = self.input_layernorm(x)
        query, key, value = (
            self.self_attn[name](y).view(batch, positions, -1, HEAD_DIM).transpose(1, 2)
            for name in ("q_proj", "k_proj", "v_proj")
        )
        query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        mixed = functional.scaled_dot_product_attention(
            query.to(value.dtype),
            key.to(value.dtype).repeat_interleave(HEADS // KV_HEADS, dim=1),
            value.repeat_interleave(HEADS // KV_HEADS, dim=1),
            attn_mask=band if self.sliding else None,
            is_causal=not self.sliding,
            dropout_p=self.dropout if self.training else 0.0,
        )
        added = self.self_attn["o_proj"](mixed.transpose(1, 2).reshape(batch, positions, -1))
        x = x + functional.dropout(added, self.dropout, self.training)
        y = self.post_attention_layernorm(x)
        added = self.mlp["down_proj"](functional.silu(self.mlp["gate_proj"](y)) * self.mlp["up_proj"](y))
        return x + functional.dropout(added, self.dropout, self.training)


class Network(nn.Module):
    """The whole decoder; the head is the embedding transposed."""

    def __init__(self, vocab: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.embed_tokens = nn.Embedding(vocab, HIDDEN)
        self.layers = nn.ModuleList(Block(index % 2 == 1, dropout) for index in range(LAYERS))
        self.norm = nn.RMSNorm(HIDDEN, eps=1e-5)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                last = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * LAYERS) ** 0.5 if last else 0.02)
        angle = torch.outer(torch.arange(CONTEXT).float(), 10000.0 ** -(torch.arange(0, HEAD_DIM, 2) / HEAD_DIM))
        angle = torch.cat([angle, angle], dim=-1)
        distance = torch.arange(CONTEXT)[:, None] - torch.arange(CONTEXT)[None, :]
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        self.register_buffer("band", (distance >= 0) & (distance < WINDOW), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits [batch, positions, vocab] of ``ids`` [batch, positions], at most ``CONTEXT`` positions."""
        n = ids.shape[1]
        x = functional.dropout(self.embed_tokens(ids), self.dropout, self.training)
        for layer in self.layers:
            x = layer(x, self.cos[:n], self.sin[:n], self.band[:n, :n])
        return functional.linear(self.norm(x), self.embed_tokens.weight)

    def hf_tensors(self) -> dict[str, Tensor]:
        """The weights under their Hugging Face names, rounded to bfloat16, on the CPU."""
        return {f"model.{name}": value.detach().to("cpu", torch.bfloat16) for name, value in self.state_dict().items()}
