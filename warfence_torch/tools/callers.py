"""Where the program called: its own frames as one short text, without those of torch, of the lanes and of what watches it."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

import torch

import warfence.host.lanes

FRAMES = 3
_HERE = Path(__file__).parent
_INSIDE = (
    str(Path(torch.__file__).parent),
    *(str(_HERE / room) for room in ("planting", "watching", "graphs")),
    "<frozen",
)
_PLUMBING = (warfence.host.lanes.__file__, contextlib.__file__, threading.__file__, functools.__file__)


def caller_lines(up_to: CodeType | None = None, most: int = FRAMES) -> str:
    """The innermost frames first: "kernels/model.py:40 in swa_translate < loop.py:12 in step".

    up_to: the function behind which nobody looks: what called it is of no interest.
    """
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not up_to and len(found) < most:
        if label := _label(frame.f_code.co_filename):
            found.append(f"{label}:{frame.f_lineno} in {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(found)


def raised_at(error: BaseException, most: int = FRAMES) -> str:
    """Where an error came from, as `caller_lines` says it."""
    found = []
    trace = error.__traceback__
    while trace is not None:
        if label := _label(trace.tb_frame.f_code.co_filename):
            found.append(f"{label}:{trace.tb_lineno} in {trace.tb_frame.f_code.co_name}")
        trace = trace.tb_next
    return " < ".join(found[::-1][:most])


@functools.cache
def _label(file: str) -> str:
    """A file relative to the working directory where it lies in there, else with its folder. Empty: of no interest."""
    if file in _PLUMBING or file.startswith(_INSIDE):
        return ""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else "/".join(path.parts[-2:])
