"""Where in the code a call stands, as a short text."""

from __future__ import annotations

import sys
from types import CodeType, FrameType

_seen: dict[tuple[CodeType, int, CodeType | None, int], str] = {}


def call_site(depth: int) -> str:
    """The caller `depth` frames up (1: who called this), and its caller: "check/fence.py:9 in apply < a/loop.py:2 in step".

    Texts are kept by position in the code, so that asking again costs a look-up.
    """
    frame: FrameType = sys._getframe(depth)
    above = frame.f_back
    key = (frame.f_code, frame.f_lasti, above.f_code if above else None, above.f_lasti if above else 0)
    if (text := _seen.get(key)) is None:
        text = _seen[key] = " < ".join(_place(one) for one in (frame, above) if one is not None)
    return text


def _place(frame: FrameType) -> str:
    code = frame.f_code
    folder, _, name = code.co_filename.replace("\\", "/").rpartition("/")
    return f"{folder.rpartition('/')[2]}/{name}:{frame.f_lineno} in {code.co_name}"
