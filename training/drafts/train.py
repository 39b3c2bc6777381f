"""Step 2: train a draft. ``python training/drafts/train.py dflash --data .corpus --rollouts FILE --out DIRECTORY``

Writes ``model.safetensors`` (bfloat16, the checkpoint with the most tokens a verify step on the validation books) and
``run.json`` (settings, versions, curve, results on the held-out books). The time is given, and the learning rate follows
the clock; the number of steps is an outcome. The seed fixes the initial weights and the order of the rows.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from pathlib import Path
from typing import Any

import torch
from acceptance import continuations, measure
from dflash import DFlash
from eagle import Eagle
from rollouts import TEMPERATURE
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from target import Target, load_target, target_sha256
from torch import Tensor, nn

DRAFTS = {draft.name: draft for draft in (DFlash, Eagle)}
WARMUP = 0.02  # of the time
RESULTS = (("validation", "validation", 0.0), ("heldout", "heldout", 0.0), ("heldout_sampled", "heldout", TEMPERATURE))


def learning_rate(progress: float, peak: float) -> float:
    """Linear warm-up, then a cosine down to a hundredth."""
    if progress < WARMUP:
        return peak * max(progress / WARMUP, 0.01)
    return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * (progress - WARMUP) / (1 - WARMUP))))


def tensors(draft: nn.Module) -> dict[str, Tensor]:
    """The weights under the names that warfence loads, rounded to bfloat16, on the CPU."""
    state = draft.state_dict()
    return {f"{draft.name}.{key}": value.detach().to("cpu", torch.bfloat16) for key, value in state.items()}


def load_draft(path: Path, draft: nn.Module) -> None:
    """Load what ``tensors`` wrote, widened to float32."""
    stored = load_file(path)
    draft.load_state_dict({key.removeprefix(f"{draft.name}."): value.float() for key, value in stored.items()})


def make_optimizer(draft: nn.Module, decay: float) -> torch.optim.AdamW:
    """AdamW; only matrices decay."""
    matrices = [parameter for parameter in draft.parameters() if parameter.ndim == 2]
    vectors = [parameter for parameter in draft.parameters() if parameter.ndim == 1]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True)


def parse_arguments() -> argparse.Namespace:
    """The command line; its defaults are the settings of the shipped drafts."""
    parser = argparse.ArgumentParser(description="Train a draft for the shipped model.")
    parser.add_argument("draft", choices=sorted(DRAFTS))
    parser.add_argument("--data", type=Path, required=True, help="the folder that prepare.py wrote")
    parser.add_argument("--rollouts", type=Path, required=True, help="the file that rollouts.py wrote")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=250.0, help="time for steps and validations")
    parser.add_argument("--batch", type=int, default=128, help="rows of a step")
    parser.add_argument("--anchors", type=int, default=40, help="dflash: blocks of a row")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--decay", type=float, default=0.01)
    parser.add_argument("--every", type=int, default=500, help="steps between two validations")
    parser.add_argument("--limit", type=int, help="only so many validation and held-out prompts")
    return parser.parse_args()


def train(arguments: argparse.Namespace, target: Target, draft: nn.Module, device: str) -> dict[str, Any]:
    """Train for the given time, write every checkpoint that validates better, and give the record."""
    file = load_file(arguments.rollouts)
    ids, lengths = file["ids"].to(device), file["lengths"].to(device)
    validation = continuations(target, arguments.data, "validation", device, arguments.limit)
    generator = torch.Generator(device).manual_seed(arguments.seed)
    optimizer = make_optimizer(draft, arguments.decay)
    best, curve, running = 0.0, [], torch.zeros((), device=device)
    begin, step, last = time.monotonic(), 0, 0
    while (progress := (time.monotonic() - begin) / arguments.seconds) < 1 or last < step:
        if progress >= 1 or step - last == arguments.every:
            loss = running.item() / (step - last)
            seen = measure(draft, target, *validation)
            point = {"step": step, "seconds": round(time.monotonic() - begin, 1), "loss": round(loss, 4)}
            curve.append({**point, "tokens_per_step": seen["tokens_per_step"]})
            print(draft.name, json.dumps(curve[-1]), flush=True)
            if seen["tokens_per_step"] > best:
                best = seen["tokens_per_step"]
                save_file(tensors(draft), arguments.out / "model.safetensors", metadata={"format": "pt"})
            running.zero_()
            last = step
            continue
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(progress, arguments.rate)
        rows = torch.randint(len(ids), (arguments.batch,), device=device, generator=generator)
        tokens = ids[rows].long()
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = draft.loss(tokens, lengths[rows].long(), target.states(tokens), arguments.anchors)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(draft.parameters(), 1.0)
        optimizer.step()
        running += loss.detach()
        step += 1
    return {"steps": step, "seconds": round(time.monotonic() - begin, 1), "curve": curve}


def main() -> None:
    """Train with the arguments of the command line, then measure the kept checkpoint on both parts."""
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(arguments.seed)
    target = load_target(device)
    draft = DRAFTS[arguments.draft](target).to(device)
    record = train(arguments, target, draft, device)
    load_draft(arguments.out / "model.safetensors", draft)
    for key, part, temperature in RESULTS:
        rows = continuations(target, arguments.data, part, device, arguments.limit, temperature)
        record[key] = measure(draft, target, *rows)
        print(draft.name, key, json.dumps(record[key]), flush=True)
    with safe_open(arguments.rollouts, "pt") as file:
        rollouts = json.loads(file.metadata()["record"])
    settings = {key: value for key, value in vars(arguments).items() if key not in ("data", "rollouts", "out", "limit")}
    run = {
        "settings": settings,
        "rollouts": rollouts,
        "device": torch.cuda.get_device_name() if device == "cuda" else "CPU",
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "target_sha256": target_sha256(),
        "block": draft.block,
        "parameters": sum(parameter.numel() for parameter in draft.parameters()),
        **record,
    }
    (arguments.out / "run.json").write_text(json.dumps(run, indent=1) + "\n")


if __name__ == "__main__":
    main()
