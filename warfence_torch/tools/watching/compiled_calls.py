"""Compiled functions under a watch: they stay compiled, and the watch steps aside while one runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from warfence_torch.tools.watching.patches import Patches

WRAPPER = "compile_wrapper"


class CompiledCalls:
    """Tells when this process calls a compiled function, and when that is over, so that a mode can step aside meanwhile.

    torch has no such hook. Each call of a compiled function is a frame of `compile_wrapper`, which sets the evaluation of
    frames when it begins, around the compiled code, and, last of all, back to what it was. These two setters are wrapped.
    """

    def __init__(self, aside: Callable[[], None], back: Callable[[], None]) -> None:
        """aside, back: called by the thread that calls a compiled function, around the outermost one."""
        self._aside, self._back = aside, back
        self._thread = threading.local()

    def install(self, patches: Patches) -> bool:
        """Whether this torch is built as we think. Where it is not, nothing is wrapped."""
        from torch._dynamo import eval_frame

        skip_code: Any = getattr(eval_frame, "skip_code", None)  # else torch would compile what is put in here
        names = {name for code in _wrappers(eval_frame) for name in code.co_names}
        if skip_code is None or not {"set_eval_frame", "_maybe_set_eval_frame"} <= names:
            return False
        for name, instead in (("set_eval_frame", self._set), ("_maybe_set_eval_frame", self._maybe_set)):
            patches.wrap(eval_frame, name, instead)
            for function in (getattr(eval_frame, name), instead.__func__):  # type: ignore[attr-defined]
                skip_code(function.__code__)
        return True

    def _set(self, original: Callable[[Any], Any], callback: Any) -> Any:
        frame = sys._getframe(2)
        if frame.f_code.co_name == WRAPPER:
            entered = self._entered()
            while entered and entered[-1][0] is not frame and not _calls(frame, entered[-1][0]):
                entered.pop()
            if not entered or entered[-1][0] is not frame:
                entered.append([frame, False])
                if len(entered) == 1:
                    self._aside()
        return original(callback)

    def _maybe_set(self, original: Callable[[Any], Any], callback: Any) -> Any:
        frame = sys._getframe(2)
        was = original(callback)
        entered = self._entered() if frame.f_code.co_name == WRAPPER else []
        if entered and entered[-1][0] is frame:
            if callable(callback) and not entered[-1][1]:
                entered[-1][1] = True  # the compiled code comes now; the next time it is over
            else:
                entered.pop()
                if not entered:
                    self._back()
        return was

    def _entered(self) -> list[list[Any]]:
        """The frames of the compiled functions that this thread is in, and whether their code has begun."""
        if not hasattr(self._thread, "entered"):
            self._thread.entered = []
        entered: list[list[Any]] = self._thread.entered
        return entered


def _calls(frame: FrameType, outer: FrameType) -> bool:
    """Whether a frame runs inside an outer one."""
    at: FrameType | None = frame
    while at is not None and at is not outer:
        at = at.f_back
    return at is outer


def _wrappers(eval_frame: Any) -> list[CodeType]:
    made = eval_frame._TorchDynamoContext.__call__.__code__.co_consts
    return [code for code in made if isinstance(code, CodeType) and code.co_name == WRAPPER]
