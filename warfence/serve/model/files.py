"""The files of a model directory: which of them hold the weights, and whether they are what they were."""

from __future__ import annotations

import hashlib
from pathlib import Path

from warfence.core.errors import InputError
from warfence.host.documents import read_object

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"


def weight_files(directory: Path) -> list[Path]:
    """The ``*.safetensors`` files of ``directory`` that hold its weights, by name: those of the index; else
    ``model.safetensors``; else all. Raises ``InputError`` when there is none, or the index names one that is absent."""
    if (directory / INDEX).exists():
        return _indexed(directory)
    if (directory / SINGLE).exists():
        return [directory / SINGLE]
    files = sorted(directory.glob("*.safetensors"))
    if not files:
        raise InputError(f"'{directory}' holds no *.safetensors file; give a Hugging Face model directory")
    return files


def _indexed(directory: Path) -> list[Path]:
    index = directory / INDEX
    names = read_object(index, "copy the file again").get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise InputError(f"'{index}' has no 'weight_map' of tensor and file names; copy the file again")
    files = [directory / name for name in sorted(set(names.values()))]
    for path in files:
        if path.parent != directory or path.suffix != ".safetensors":
            raise InputError(f"'{index}' names '{path.name}'; allowed are *.safetensors files of the same directory")
        if not path.is_file():
            raise InputError(f"'{path}' is named in {INDEX} but absent; copy every shard")
    return files


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify_checksums(directory: Path) -> None:
    """Check ``directory`` against its ``SHA256SUMS`` (the format of ``sha256sum``); without that file do nothing.

    Raises ``InputError`` naming the first file that is absent or differs.
    """
    sums = directory / "SHA256SUMS"
    if not sums.exists():
        return
    for line in sums.read_text(encoding="utf-8", errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        path = directory / name.removeprefix("*")
        if not name or path.parent != directory:
            raise InputError(f"'{sums}' has the line {line!r}; each must be a SHA-256, two spaces and a file name")
        if not path.is_file():
            raise InputError(f"'{path}' is listed in SHA256SUMS but absent; install or copy the model again")
        if (seen := file_sha256(path)) != digest:
            raise InputError(
                f"'{path}' has SHA-256 {seen[:16]}..., but SHA256SUMS says {digest[:16]}...:"
                " the file is damaged or was changed; install or copy the model again"
            )
