"""Step 3: ship the drafts. ``python training/drafts/export.py RUN [RUN ...]``

For each run of train.py writes ``warfence/serve/model/assets/<name>``: weights, ``config.json``, ``training.json``, model card,
checksums. Needs no GPU and no torch. Refuses a run that was made for other weights than those that ship.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from warfence.serve.model import ASSETS, ModelConfig, load_model
from warfence.serve.model.files import file_sha256
from warfence.serve.model.safetensors_file import F32Array, read_safetensors
from warfence.serve.model.weights import LAYER_WEIGHTS

CARD = Path(__file__).parent / "card.md"
SUMMED = ("config.json", "model.safetensors")
ABOUT = {
    "dflash": "A parallel draft (block diffusion, one step): it reads three hidden states of the target and guesses the"
    " next {guesses} tokens at once, from mask vectors.",
    "eagle": "An autoregressive draft: one layer that continues the target's last hidden state, {guesses} tokens one"
    " after another.",
}


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write readable JSON that ends in a line break."""
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def config_of(weights: dict[str, F32Array], record: dict[str, Any], target: ModelConfig) -> dict[str, Any]:
    """``config.json``. ``taps``: the target's layers whose hidden states have a matrix of their own in the weights."""
    name = next(iter(weights)).split(".")[0]
    numbers = {kind: {int(key.split(".")[2]) for key in weights if f".{kind}." in key} for kind in ("layer", "tap")}
    sizes = ("hidden", "vocab", "heads", "kv_heads", "head_dim", "ffn")
    return {
        "algorithm": name,
        "block": record["block"],
        "layers": len(numbers["layer"]),
        "taps": sorted(numbers["tap"]),
        **{size: getattr(target, size) for size in sizes},
        "rope_theta": target.rope_theta,
        "norm_eps": target.norm_eps,
        "dtype": "bfloat16",
        "target_sha256": record["target_sha256"],
    }


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The name and shape of every weight that a draft of ``config`` has."""
    name, hidden, ffn = config["algorithm"], config["hidden"], config["ffn"]
    q, kv = (config[heads] * config["head_dim"] for heads in ("heads", "kv_heads"))
    layer = [(hidden,), (hidden, q), (hidden, kv), (hidden, kv), (q, hidden), (hidden,)]
    layer += [(hidden, ffn), (hidden, ffn), (ffn, hidden)]
    top = {"fc": (2 * hidden, hidden)} if name == "eagle" else {"mask": (hidden,), "context_norm": (hidden,)}
    result = {f"{name}.{key}": shape for key, shape in {**top, "norm": (hidden,)}.items()}
    result |= {f"{name}.tap.{index}": (hidden, hidden) for index in config["taps"]}
    for index in range(config["layers"]):
        result |= {f"{name}.layer.{index}.{part}": shape for part, shape in zip(LAYER_WEIGHTS, layer, strict=True)}
    return result


def curve(points: list[dict[str, float]], rows: int = 12) -> str:
    """A table of about ``rows`` evenly chosen points, the last one among them."""
    last = len(points) - 1
    chosen = sorted({round(index * last / (rows - 1)) for index in range(rows)})
    row = "| {step:,} | {seconds:.0f} | {loss:.3f} | {tokens_per_step:.3f} |"
    return "\n".join(row.format(**points[index]) for index in chosen)


def export(run: Path, assets: Path) -> Path:
    """Write the directory of one run into ``assets``."""
    model, record = load_model(), json.loads((run / "run.json").read_text())
    if record["target_sha256"] != model.sha256:
        raise SystemExit(f"{run} was trained for target {record['target_sha256'][:16]}; shipped is {model.sha256[:16]}")
    weights = read_safetensors(run / "model.safetensors")
    config = config_of(weights, record, model.config)
    if {name: value.shape for name, value in weights.items()} != shapes(config):
        raise SystemExit(f"{run} has other weights than a {config['algorithm']} draft: {sorted(weights)}")
    out = assets / config["algorithm"]
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run / "model.safetensors", out / "model.safetensors")
    write_json(out / "config.json", config)
    (out / "SHA256SUMS").write_text("".join(f"{file_sha256(out / name)}  {name}\n" for name in SUMMED))
    digest = file_sha256(out / "model.safetensors")
    write_json(out / "training.json", {**record, "weights_sha256": digest})
    card = CARD.read_text(encoding="utf-8").format(
        target=model.config.name,
        about=ABOUT[config["algorithm"]].format(guesses=config["block"] - 1),
        config=config,
        record=record,
        size=(out / "model.safetensors").stat().st_size,
        sha256=digest,
        shares=", ".join(f"{share:.0%}" for share in record["heldout"]["share_accepting_at_least"]),
        curve=curve(record["curve"]),
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    return out


def main() -> None:
    """Export the runs of the command line."""
    parser = argparse.ArgumentParser(description="Write the shipped draft directories from finished runs.")
    parser.add_argument("runs", type=Path, nargs="+", help="folders that train.py wrote")
    parser.add_argument("--assets", type=Path, default=ASSETS, help="where to write; the shipped model's folder")
    arguments = parser.parse_args()
    for run in arguments.runs:
        print(export(run, arguments.assets))


if __name__ == "__main__":
    main()
