"""The file of a sweep: one JSON document a line. First its options, then each chunk as it was done, in the end the result."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from warfence import __version__
from warfence.core.errors import InputError
from warfence.host.documents import decoded
from warfence.races.sweep.options import SweepOptions
from warfence.races.sweep.work import Judged


@dataclass(frozen=True, slots=True)
class Line:
    """One line: it has one of these."""

    sweep: Mapping[str, Any] | None = None
    chunk: Judged | None = None
    result: Mapping[str, Any] | None = None


class Results:
    """Appends to the file. kept: the chunks that were in it already."""

    def __init__(self, path: Path, plan: SweepOptions, resume: bool) -> None:
        """InputError: there is a file and it is not to be resumed, or it is of another sweep, or it cannot be written."""
        self._path = path
        self.kept: list[Judged] = []
        now = _options(plan)
        if path.exists() and not resume:
            raise InputError(f"--out '{path}' exists; give --resume to go on with it, or another name")
        if not path.exists():
            self._append({"sweep": now}, "x")
            return
        lines, length = _whole(path)
        was = lines[0].sweep if lines else None
        if was is None:
            raise InputError(f"--out '{path}' is no file of `warfence sweep`; give another name")
        other = [f"{key} {was.get(key)} (now {now[key]})" for key in now if was.get(key) != now[key]]
        if other:
            raise InputError(
                f"--out '{path}' is of a sweep with other options: {'; '.join(other)}; give those, or another name"
            )
        self.kept = [line.chunk for line in lines if line.chunk is not None]
        try:
            os.truncate(path, length)
        except OSError as cause:
            raise self._wrong(cause) from cause

    def add(self, judged: Judged) -> None:
        """Append one chunk."""
        self._append({"chunk": asdict(judged)})

    def finish(self, document: dict[str, Any]) -> None:
        """Append the result."""
        self._append({"result": document})

    def _append(self, document: dict[str, Any], mode: Literal["a", "x"] = "a") -> None:
        try:
            with self._path.open(mode, encoding="utf-8") as file:
                file.write(json.dumps(document) + "\n")
        except OSError as cause:
            raise self._wrong(cause) from cause

    def _wrong(self, cause: OSError) -> InputError:
        return InputError(f"--out '{self._path}' cannot be written ({cause.strerror})")


def _options(plan: SweepOptions) -> dict[str, Any]:
    as_read: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(plan))
    return {"warfence": __version__, **as_read}


def _whole(path: Path) -> tuple[list[Line], int]:
    """(lines before any result, bytes up to their end). A half-written last line is dropped."""
    found, length = [], 0
    lines: Sequence[bytes] = path.read_bytes().splitlines(keepends=True)
    for number, raw in enumerate(lines, 1):
        if number == len(lines) and not raw.endswith(b"\n"):
            break
        name = f"--out '{path}', line {number}"
        line = decoded(raw, Line, "document of `warfence sweep`", "give another name", name)
        if line.result is not None:
            break
        found.append(line)
        length += len(raw)
    return found, length
