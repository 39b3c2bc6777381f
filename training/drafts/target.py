"""The shipped model as a frozen torch network: its hidden states after every layer, and fast rollouts of its own text."""

from __future__ import annotations

import torch
from network import HEAD_DIM, KV_HEADS, LAYERS, WINDOW, Block, Network, rotate
from torch import Tensor
from torch.nn import functional

from warfence.serve.model import ASSETS
from warfence.serve.model.files import file_sha256
from warfence.serve.model.safetensors_file import read_safetensors

WEIGHTS = ASSETS / "model.safetensors"


def target_sha256() -> str:
    """The digest that ties a draft to the target that it was trained for."""
    return file_sha256(WEIGHTS)


def load_target(device: str) -> Target:
    """The shipped weights in float32 on ``device``."""
    network = Network(1024, dropout=0.0)
    stored = read_safetensors(WEIGHTS)
    network.load_state_dict({name.removeprefix("model."): torch.from_numpy(value) for name, value in stored.items()})
    return Target(network.to(device).eval().requires_grad_(False))


class Target:
    """A frozen network. Every call is without gradients."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.embed: Tensor = network.embed_tokens.weight
        self.norm: Tensor = network.norm.weight

    @torch.no_grad()
    def states(self, ids: Tensor) -> list[Tensor]:
        """The hidden states [batch, positions, hidden] after each layer, before the final norm, in one pass."""
        network, n = self.network, ids.shape[1]
        x, result = network.embed_tokens(ids), []
        for layer in network.layers:
            x = layer(x, network.cos[:n], network.sin[:n], network.band[:n, :n])
            result.append(x)
        return result

    @torch.no_grad()
    def rollout(self, prompts: Tensor, lengths: Tensor, temperature: Tensor) -> Tensor:
        """Continue each row of ``prompts`` [batch, positions] after its first ``lengths`` tokens to the row's end.

        By ``temperature`` [batch, 1]: 0 is greedy, else drawn with Gumbel noise. What follows an end token is
        what the model writes next, as in its training stream.
        """
        ids, rows, positions = prompts.clone(), *prompts.shape
        caches = torch.zeros(LAYERS, 2, rows, KV_HEADS, positions, HEAD_DIM, device=ids.device)
        for position in range(positions - 1):
            x = self.network.embed_tokens(ids[:, position])
            for layer, cache in zip(self.network.layers, caches, strict=True):
                x = self._cached(layer, x, cache, position)
            logits = functional.linear(self.network.norm(x), self.embed)
            logits -= temperature * torch.empty_like(logits).exponential_().clamp_min_(1e-30).log_()
            known = position + 1 < lengths
            ids[:, position + 1] = torch.where(known, ids[:, position + 1], logits.argmax(dim=-1))
        return ids

    def _cached(self, layer: Block, x: Tensor, cache: Tensor, position: int) -> Tensor:
        """``layer`` on one token a row: ``x`` [batch, hidden]; ``cache`` [2, batch, kv_heads, positions, head_dim]."""
        cos, sin = self.network.cos[position], self.network.sin[position]
        y = layer.input_layernorm(x)
        query = rotate(layer.self_attn["q_proj"](y).view(len(x), KV_HEADS, -1, HEAD_DIM), cos, sin)
        cache[0, :, :, position] = rotate(layer.self_attn["k_proj"](y).view(len(x), KV_HEADS, HEAD_DIM), cos, sin)
        cache[1, :, :, position] = layer.self_attn["v_proj"](y).view(len(x), KV_HEADS, HEAD_DIM)
        first = max(position + 1 - WINDOW, 0) if layer.sliding else 0
        # The query heads of one key head take the place of positions: each sees all keys.
        mixed = functional.scaled_dot_product_attention(query, *cache[:, :, :, first : position + 1])
        x = x + layer.self_attn["o_proj"](mixed.flatten(1))
        y = layer.post_attention_layernorm(x)
        return x + layer.mlp["down_proj"](functional.silu(layer.mlp["gate_proj"](y)) * layer.mlp["up_proj"](y))
