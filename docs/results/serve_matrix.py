"""Serves the 40 prompts with every attention kind, fence and speculative algorithm and prints a Markdown table.

    python docs/results/serve_matrix.py torch:cuda jax:cuda torch:cpu > docs/results/NAME.md

All rows must show the same digest: tokens do not depend on backend, device, attention, fence or speculation. `verify`: mean
tokens that a verified row brought, the model's own choice included. Give `--spec` to serve the speculative cases only.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from warfence.backends import load
from warfence.core.attention import attention_names
from warfence.core.modes import FenceMode
from warfence.serve.engine import Engine, EngineConfig
from warfence.serve.model import ASSETS, Model, load_model
from warfence.serve.requests import Request
from warfence.serve.spec import get
from warfence.serve.spec.draft import load_draft

RUNS = {"fine": {"fence": FenceMode.FINE}, "coarse": {"fence": FenceMode.COARSE}, "serial": {"serial": True}}
PLAIN = [("none", attention) for attention in attention_names()]
SPECULATIVE = [
    (spec, attention) for spec in ("ngram", "dflash", "eagle") for attention in ("captured", "snapshot", "segmented")
]
COLUMNS = (
    "backend|device|spec|attention|run|tokens|digest|steps|per step|verify|fine|coarse|policies|tokens/s|host us/step"
)


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


def engine(name: str, device: str, spec: str, attention: str, model: Model) -> Engine:
    algorithm = get(spec)
    draft = load_draft(ASSETS / spec, model.config, spec) if algorithm.needs_draft else None
    return Engine(
        EngineConfig(attention=attention), model.config, model.weights, load(name)(device=device), algorithm, draft
    )


def main(arguments: list[str]) -> int:
    targets = [a for a in arguments if not a.startswith("--")] or ["torch:cpu", "jax:cpu"]
    cases = SPECULATIVE if "--spec" in arguments else [*PLAIN, *SPECULATIVE]
    model = load_model()
    prompts = (ASSETS / "prompts.txt").read_text().splitlines()
    print(f"# Serving {len(prompts)} prompts, 48 new tokens each, greedy\n")
    print(
        f"{datetime.date.today()}; {versions()}; command: `python docs/results/serve_matrix.py {' '.join(arguments)}`\n"
    )
    print(f"| {COLUMNS.replace('|', ' | ')} |")
    print(f"|{' --- |' * len(COLUMNS.split('|'))}")
    digests = set()
    for target in targets:
        name, _, device = target.partition(":")
        for spec, attention in cases:
            with engine(name, device, spec, attention, model) as served:
                for _ in served.warm_up():
                    pass
                made = served.backend.compilations
                for run, how in RUNS.items():
                    requests = [Request(i, tuple(model.tokenizer.encode(p)), 48) for i, p in enumerate(prompts)]
                    s = served.run(requests, **how)
                    assert served.backend.compilations == made, "compiled after warm-up"
                    digests.add(s.tokens_sha256)
                    verify = f"{s.spec['tokens'] / s.spec['rows']:.2f}" if s.spec["rows"] else ""
                    cells = [
                        name, device_name(name, device), spec, attention, run, s.generated_tokens,
                        f"`{s.tokens_sha256[:16]}`", s.steps, f"{s.generated_tokens / s.steps:.1f}", verify,
                        s.barriers["fine"], s.barriers["coarse"], ", ".join(f"{k} {v}" for k, v in s.policies.items()),
                        f"{s.generated_tokens / s.seconds:.0f}", f"{s.host_us_per_step:.0f}",
                    ]  # fmt: skip
                    print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print(f"\n{'All digests are equal.' if len(digests) == 1 else f'DIFFERENT DIGESTS: {sorted(digests)}'}")
    return len(digests) != 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
