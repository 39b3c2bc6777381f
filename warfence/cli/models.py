"""`warfence models DIR`: what a model directory needs and what was understood of it, without its weights and without serving."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from warfence.cli.options import AsJson
from warfence.cli.output import print_json, print_table, say, screen
from warfence.core.errors import InputError
from warfence.serve.model import ASSETS, Directory, read_directory
from warfence.serve.model.chat import chat_template
from warfence.serve.model.hf_config import ARCHITECTURES

DirectoryArgument = Annotated[
    Path | None,
    typer.Argument(metavar="DIR", help="Hugging Face directory.", show_default="the shipped model"),
]


def models(directory: DirectoryArgument = None, as_json: AsJson = False) -> None:
    """Say what was understood of a model directory, and what of it is not done, without serving it."""
    found = read_directory(directory or ASSETS, named=directory is None)
    facts = understood(found)
    if as_json:
        print_json(facts | {"notes": list(found.notes)})
        return
    print_table(str(found.path), ("what", "understood"), [(key, _words(value)) for key, value in facts.items()])
    for note in found.notes:
        say(screen(), note)
    say(screen(), f"Architectures that are served: {', '.join(ARCHITECTURES)}.")


def understood(found: Directory) -> dict[str, Any]:
    """The facts by name, in the order in which they are shown."""
    config = found.config
    sliding = sum(config.sliding)
    return {
        "name": config.name,
        "architecture": found.architecture,
        "sizes": {
            "layers": config.layers, "hidden": config.hidden, "heads": config.heads, "kv_heads": config.kv_heads,
            "head_dim": config.head_dim, "ffn": config.ffn, "vocab": config.vocab,
        },
        "context": config.context,
        "rope": {"kind": config.rope.kind, "base": config.rope_theta, "scale": config.rope.scale},
        "window": {"keys": config.window, "layers": sliding} if sliding else None,
        "beside the common weights": list(config.extras),
        "tied by config.json": found.tied,
        "stop ids": list(config.eos_ids),
        "tokenizer": f"tokenizer.json, ids up to {found.tokenizer.vocab - 1}",
        "chat template": _has_template(found.path),
        "weight files": {path.name: path.stat().st_size for path in found.files},
    }  # fmt: skip


def _has_template(path: Path) -> bool:
    try:
        chat_template(path)
    except InputError:
        return False
    return True


def _words(value: Any) -> str:
    """A fact as people read it: no braces, no quotes."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
