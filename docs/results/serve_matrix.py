"""Serves the 40 prompts with every attention kind and fence on the named backends and prints a Markdown table.

    python docs/results/serve_matrix.py torch:cuda jax:cuda torch:cpu > docs/results/NAME.md

All rows must show the same digest: tokens do not depend on backend, device, attention or fence.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from warfence.attention import KINDS
from warfence.backends import load
from warfence.engine import Engine, EngineConfig
from warfence.model import ASSETS, load_model
from warfence.modes import FenceMode
from warfence.requests import Request

RUNS = {"fine": {"fence": FenceMode.FINE}, "coarse": {"fence": FenceMode.COARSE}, "serial": {"serial": True}}


def versions() -> str:
    names = ["torch", "jax", "jaxlib", "numpy", "cuda-bindings"]
    found = []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join([f"Python {platform.python_version()}", *found])


def device_name(backend: str, device: str) -> str:
    if device == "cpu":
        return "cpu"
    import torch

    return torch.cuda.get_device_name(0)


def main(targets: list[str]) -> int:
    model = load_model()
    prompts = (ASSETS / "prompts.txt").read_text().splitlines()
    print(f"# Serving {len(prompts)} prompts, 48 new tokens each, greedy\n")
    print(
        f"{datetime.date.today()}; {versions()}; command: `python docs/results/serve_matrix.py {' '.join(targets)}`\n"
    )
    print(
        "| backend | device | attention | run | tokens | digest | fine | coarse | policies | tokens/s | host us/step |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    digests = set()
    for target in targets:
        name, _, device = target.partition(":")
        for attention in KINDS:
            backend = load(name)(device=device)
            with Engine(EngineConfig(attention=attention), model.config, model.weights, backend) as engine:
                for _ in engine.warm_up():
                    pass
                made = backend.compilations
                for run, how in RUNS.items():
                    requests = [Request(i, tuple(model.tokenizer.encode(p)), 48) for i, p in enumerate(prompts)]
                    s = engine.run(requests, **how)
                    assert backend.compilations == made, "compiled after warm-up"
                    digests.add(s.tokens_sha256)
                    policies = ", ".join(f"{k} {v}" for k, v in s.policies.items())
                    print(
                        f"| {name} | {device_name(name, device)} | {attention} | {run} | {s.generated_tokens} | "
                        f"`{s.tokens_sha256[:16]}` | {s.barriers['fine']} | {s.barriers['coarse']} | {policies} | "
                        f"{s.generated_tokens / s.seconds:.0f} | {s.host_us_per_step:.0f} |",
                        flush=True,
                    )
    print(f"\n{'All digests are equal.' if len(digests) == 1 else f'DIFFERENT DIGESTS: {sorted(digests)}'}")
    return len(digests) != 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["torch:cpu", "jax:cpu"]))
