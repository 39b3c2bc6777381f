"""What a Hugging Face directory says, without its weights: enough to list it, and to be sure that it can be served."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from warfence.host.documents import read_object
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.files import weight_files
from warfence.serve.model.generation import left_out, stop_ids
from warfence.serve.model.hf_config import architecture_of, from_hf
from warfence.serve.model.tokenizer import Tokenizer

REMEDY = "give a Hugging Face model directory (config.json, *.safetensors, tokenizer.json)"


@dataclass(frozen=True, slots=True)
class Directory:
    """What was understood. tied: `tie_word_embeddings`. files: those with the weights. notes: what is said and not done."""

    path: Path
    architecture: str
    config: ModelConfig
    tied: bool
    files: tuple[Path, ...]
    tokenizer: Tokenizer = field(repr=False)
    notes: tuple[str, ...] = ()


def read_directory(path: Path, named: bool = False) -> Directory:
    """Read the JSON files of the directory and find its weights. named: the model's name is in `config.json`.

    Raises InputError, with what was seen and what is allowed, for what is absent or not supported.
    """
    raw = read_object(path / "config.json", REMEDY)
    name = str(raw.get("name", "warfence")) if named else path.resolve().name
    config = from_hf(raw, name)
    notes: list[str] = []
    if (path / "generation_config.json").exists():
        generation = read_object(path / "generation_config.json", "copy the file again")
        config = replace(config, eos_ids=stop_ids(generation, name))
        notes += left_out(generation)
    tokenizer = Tokenizer.load(path, config.vocab)
    notes += tokenizer.notes
    files = tuple(weight_files(path))
    if unread := sorted(p.name for p in path.glob("*.safetensors") if p not in files):
        notes.append(f"Not read, for the weights are in other files: {', '.join(unread)}.")
    return Directory(
        path, architecture_of(raw, name), config, bool(raw.get("tie_word_embeddings")), files, tokenizer, tuple(notes)
    )
