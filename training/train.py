"""Step 2: train. ``python training/train.py --data .corpus --out .corpus/run`` (a CUDA device: minutes; CPU: hours)

Writes ``model.safetensors`` (bfloat16, Hugging Face names, the checkpoint with the lowest validation loss) and
``run.json`` (seed, settings, versions, loss curve). All loss figures are bits per byte of UTF-8 text.
The seed fixes the initial weights, the batches and the dropout; another device or version rounds differently.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from pathlib import Path

import torch
from network import CONTEXT, Network
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

Stream = tuple[Tensor, float]  # token ids, and UTF-8 bytes per token


def read_stream(data: Path, part: str) -> Stream:
    """The documents of ``part`` as one stream of ids, the end token before each and after the last."""
    tokenizer = Tokenizer.from_file(str(data / "tokenizer.json"))
    documents = (data / f"{part}.txt").read_text(encoding="utf-8").splitlines()
    ids = [0]
    for encoding in tokenizer.encode_batch(documents):
        ids += [*encoding.ids, 0]
    size = sum(len(document.encode()) for document in documents)
    return torch.tensor(ids), size / (len(ids) - 1)


def bits_per_byte(network: Network, stream: Stream, device: str) -> float:
    """Mean loss over the stream in windows of the full context that do not overlap."""
    ids, bytes_per_token = stream
    network.eval()
    total, count = 0.0, 0
    with torch.no_grad(), torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        for start in range(0, len(ids) - 1, CONTEXT):
            window = ids[start : start + CONTEXT + 1].to(device)
            loss = functional.cross_entropy(network(window[None, :-1])[0].float(), window[1:], reduction="sum")
            total, count = total + loss.item(), count + len(window) - 1
    network.train()
    return total / count / math.log(2) / bytes_per_token


def learning_rate(step: int, arguments: argparse.Namespace) -> float:
    """Linear warm-up, then a cosine down to a hundredth."""
    if step < arguments.warmup:
        return float(arguments.rate * (step + 1) / arguments.warmup)
    progress = (step - arguments.warmup) / max(arguments.steps - arguments.warmup, 1)
    return float(arguments.rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * progress))))


def parse_arguments() -> argparse.Namespace:
    """The command line; its defaults are the settings of the shipped model."""
    parser = argparse.ArgumentParser(description="Train the shipped model.")
    parser.add_argument("--data", type=Path, required=True, help="the folder that prepare.py wrote")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=64, help="windows of 512 tokens a step")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--warmup", type=int, default=150)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--every", type=int, default=250, help="steps between two validations")
    return parser.parse_args()


def train(arguments: argparse.Namespace, device: str) -> None:
    """Train, and write the run at every validation: a run that is cut off leaves its best checkpoint."""
    begin = time.monotonic()
    train_ids, train_ratio = read_stream(arguments.data, "train")
    validation = read_stream(arguments.data, "validation")
    torch.manual_seed(arguments.seed)
    batches = torch.Generator().manual_seed(arguments.seed)
    network = Network(1024, arguments.dropout).to(device)
    matrices = [parameter for parameter in network.parameters() if parameter.ndim == 2]
    norms = [parameter for parameter in network.parameters() if parameter.ndim == 1]
    groups = [{"params": matrices, "weight_decay": arguments.decay}, {"params": norms, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=arguments.rate, betas=(0.9, 0.98), fused=True)
    stream = train_ids.to(device)
    offsets = torch.arange(CONTEXT + 1, device=device)
    best = math.inf
    curve: list[dict[str, float]] = []
    running = torch.zeros((), device=device)
    for step in range(arguments.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, arguments)
        starts = torch.randint(len(train_ids) - CONTEXT - 1, (arguments.batch, 1), generator=batches)
        window = stream[starts.to(device) + offsets]
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = network(window[:, :-1])
        loss = functional.cross_entropy(logits.float().flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        running += loss.detach()
        if (step + 1) % arguments.every == 0 or step + 1 == arguments.steps:
            since = (step % arguments.every) + 1
            point = {
                "step": step + 1,
                "train": running.item() / since / math.log(2) / train_ratio,
                "validation": bits_per_byte(network, validation, device),
            }
            running.zero_()
            curve.append(point)
            print(json.dumps(point), flush=True)
            if point["validation"] < best:
                best = point["validation"]
                save_file(network.hf_tensors(), arguments.out / "model.safetensors", metadata={"format": "pt"})
            write_run(arguments, device, curve, time.monotonic() - begin)


def write_run(arguments: argparse.Namespace, device: str, curve: list[dict[str, float]], seconds: float) -> None:
    """Write ``run.json``: what was run, where, and the loss curve so far."""
    settings = {key: value for key, value in vars(arguments).items() if key not in ("data", "out")}
    run = {
        "settings": settings,
        "device": torch.cuda.get_device_name() if device == "cuda" else "CPU",
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "seconds": round(seconds, 1),
        "best_validation_bits_per_byte": min(point["validation"] for point in curve),
        "curve": curve,
    }
    (arguments.out / "run.json").write_text(json.dumps(run, indent=1) + "\n")


def main() -> None:
    """Train with the arguments of the command line."""
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    train(arguments, "cuda" if torch.cuda.is_available() else "cpu")


if __name__ == "__main__":
    main()
