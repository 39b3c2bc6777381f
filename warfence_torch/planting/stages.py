"""What a traced operation belongs to: the stage that the caller named, and the caller's lines of code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import CodeType

import torch

TORCH = str(Path(torch.__file__).parent)
OWN = str(Path(__file__).parent)
FRAMES = 6  # of the caller's code in one report line

_stage: ContextVar[str] = ContextVar("stage", default="")


@contextmanager
def stage(name: str) -> Iterator[None]:
    """`with stage("page_table"):` what is done inside belongs to this stage of the forward. Costs nothing elsewhere."""
    before = _stage.set(name)
    try:
        yield
    finally:
        _stage.reset(before)


def current_stage() -> str:
    """The stage of this thread; empty outside of one."""
    return _stage.get()


def caller_lines(up_to: CodeType | None = None) -> str:
    """File and line of the caller's code, innermost first, without torch's frames and without those of this package.

    up_to: the function behind which nobody looks: what called the traced function is of no interest.
    """
    said: list[str] = []
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not up_to and len(said) < FRAMES:
        name = frame.f_code.co_filename
        if not name.startswith((TORCH, OWN, "<frozen")):
            said.append(f"{_short(name)}:{frame.f_lineno}")
        if frame.f_back is None:
            break
        frame = frame.f_back
    return " < ".join(said)


@cache
def _short(name: str) -> str:
    """A file name relative to the working directory where it lies in there."""
    path = Path(name)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else name
