"""Serves a directory of real size, whose weights are random, behind every fence and prints a Markdown table.

    python docs/results/real_size.py llama-3.2-1b torch:cuda FOLDER > docs/results/NAME.md

The directory is written to FOLDER first, in shards with an index, stored as bfloat16; the kernels compute in float32. Random
weights say nothing sensible: what counts is the digest, one for all rows, and the times.
"""

from __future__ import annotations

import datetime
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from serve_matrix import device_name, versions

from warfence.backends import load
from warfence.core.modes import FenceMode
from warfence.serve.engine import Engine, EngineConfig
from warfence.serve.model import ASSETS, Model, load_model
from warfence.serve.model.hf_config import from_hf
from warfence.serve.model.weights import hf_name, shapes
from warfence.serve.requests import Request
from warfence.serve.spec import get

LLAMA3 = {
    "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


def shape(architecture: str, sizes: str, context: int, theta: float, **more: Any) -> dict[str, Any]:
    """sizes: vocab, hidden, layers, heads, kv_heads, ffn."""
    vocab, hidden, layers, heads, kv_heads, ffn = map(int, sizes.split())
    return {
        "architectures": [architecture], "vocab_size": vocab, "hidden_size": hidden, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "intermediate_size": ffn, "rms_norm_eps": 1e-5,
        "max_position_embeddings": context, "rope_theta": theta, "eos_token_id": None, **more,
    }  # fmt: skip


SHAPES = {
    "llama-3.2-1b": shape(
        "LlamaForCausalLM", "128256 2048 16 32 8 8192", 131072, 500000.0, rope_scaling=LLAMA3, tie_word_embeddings=True
    ),
    "mistral-7b": shape("MistralForCausalLM", "32000 4096 32 32 8 14336", 32768, 10000.0, sliding_window=4096),
    "tiny": shape(
        "LlamaForCausalLM", "1024 64 2 4 2 128", 1024, 500000.0, rope_scaling=LLAMA3, tie_word_embeddings=True
    ),
}
RUNS: dict[str, dict[str, Any]] = {
    "fine": {"fence": FenceMode.FINE}, "coarse": {"fence": FenceMode.COARSE}, "self": {"fence": FenceMode.SELF},
    "serial": {"serial": True},
}  # fmt: skip
SHARD = 1_000_000_000  # weights


def write(name: str, folder: Path, device: str) -> None:
    """The directory; the noise is drawn on the device."""
    config = from_hf(SHAPES[name], name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(SHAPES[name]))
    shutil.copyfile(ASSETS / "tokenizer.json", folder / "tokenizer.json")
    generator = torch.Generator(device).manual_seed(0)
    names: dict[str, str] = {}
    shard: dict[str, torch.Tensor] = {}

    def close() -> None:
        file = f"model-{len(set(names.values())) + 1:05}.safetensors"
        save_file(shard, folder / file)
        names.update(dict.fromkeys(shard, file))
        shard.clear()

    for weight, size in shapes(config).items():
        if weight == "head" and SHAPES[name].get("tie_word_embeddings"):
            continue
        stored = size if weight == "embed" else size[::-1]  # a Linear is stored as [out, in]
        noise = torch.randn(stored, generator=generator, device=device) * (1.0 if len(size) > 1 else 0.1)
        # Scaled so that layers neither fade nor grow, and the best of all tokens stands out.
        noise = noise * size[0] ** -0.5 if len(size) > 1 else 1 + noise
        shard[hf_name(weight)] = noise.to(torch.bfloat16).cpu().contiguous()
        if sum(t.numel() for t in shard.values()) > SHARD:
            close()
    if shard:
        close()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))


def served(model: Model, target: str, spec: str) -> list[str]:
    """One row of the table for each run, on one warm engine."""
    name, device = target.split(":")
    algorithm = get(spec)
    config = EngineConfig(rows=8, chunk=64, attention="captured", context=256)
    rows = []
    with Engine(config, model.config, model.weights, load(name)(device=device), algorithm) as engine:
        for _ in engine.warm_up():
            pass
        for label, how in [("warm", {}), *RUNS.items()]:
            requests = [
                Request(i, tuple(model.tokenizer.encode(text)), 48)
                for i, text in enumerate((ASSETS / "prompts.txt").read_text().splitlines()[:16])
            ]
            done = engine.run(requests, **how)
            if label != "warm":
                rate = done.generated_tokens / done.seconds
                cells = [
                    model.config.name, target, spec, label, done.generated_tokens, done.tokens_sha256[:12], done.steps,
                    done.barriers.get("fine", 0), done.barriers.get("coarse", 0), f"{rate:.0f}",
                    f"{1e3 * done.seconds / done.steps:.2f}",
                ]  # fmt: skip
                rows.append("| " + " | ".join(map(str, cells)) + " |")
    return rows


def main(name: str, target: str, folder: str) -> None:
    device = target.split(":")[1]
    began = time.perf_counter()
    write(name, Path(folder), device)
    wrote = time.perf_counter()
    model = load_model(folder)
    read = time.perf_counter()
    parameters = sum(weight.size for key, weight in model.weights.items() if key != "head")
    print(f"# {name}: random weights, {parameters / 1e9:.2f} B parameters without the head\n")
    print(f"{datetime.date.today()}, {device_name(*target.split(':'))}, {versions()}.")
    print(f"`python docs/results/real_size.py {name} {target} FOLDER`\n")
    print(f"Stored as bfloat16, computed in float32. Written in {wrote - began:.0f} s, read in {read - wrote:.0f} s.\n")
    for note in model.notes:
        print(f"- {note}")
    columns = ["model", "target", "spec", "run", "tokens", "digest", "steps", "fine", "coarse", "tokens/s", "ms a step"]
    print("| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")
    for spec in ("none", "ngram"):
        print("\n".join(served(model, target, spec)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
