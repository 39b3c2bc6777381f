"""The file of a sweep: one JSON document a line. First its options, then each chunk as it was done, in the end the result."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from warfence import __version__
from warfence.core.errors import InputError
from warfence.races.sweep.plan import Plan
from warfence.races.sweep.work import Judged


class Results:
    """Appends to the file. kept: the chunks that were in it already."""

    def __init__(self, path: Path, plan: Plan, resume: bool) -> None:
        """InputError: there is a file and it is not to be resumed, or it is of another sweep, or it cannot be written."""
        self._path = path
        self.kept: list[Judged] = []
        head = _head(plan)
        if path.exists() and not resume:
            raise InputError(f"--out '{path}' exists; give --resume to go on with it, or another name")
        if not path.exists():
            self._append(head, "x")
            return
        lines, length = _whole(path)
        if not lines or "sweep" not in lines[0]:
            raise InputError(f"--out '{path}' is no file of `warfence sweep`; give another name")
        was, now = lines[0]["sweep"], head["sweep"]
        other = [f"{key} {was.get(key)} (now {now[key]})" for key in now if was.get(key) != now[key]]
        if other:
            raise InputError(
                f"--out '{path}' is of a sweep with other options: {'; '.join(other)}; give those, or another name"
            )
        self.kept = [_judged(line["chunk"]) for line in lines if "chunk" in line]
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


def _head(plan: Plan) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(json.dumps(asdict(plan)))
    return {"sweep": {"warfence": __version__, **options}}


def _whole(path: Path) -> tuple[list[dict[str, Any]], int]:
    """(documents before any result, bytes up to their end). A half-written last line is dropped."""
    found, length = [], 0
    lines: Sequence[bytes] = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            document = json.loads(line)
        except ValueError:
            document = None
        if not isinstance(document, dict) or not line.endswith(b"\n"):
            if number == len(lines):
                break
            raise InputError(f"--out '{path}', line {number} is no document of `warfence sweep`; give another name")
        if "result" in document:
            break
        found.append(document)
        length += len(line)
    return found, length


def _judged(document: dict[str, Any]) -> Judged:
    return Judged(**document | {"failures": {int(index): said for index, said in document["failures"].items()}})
