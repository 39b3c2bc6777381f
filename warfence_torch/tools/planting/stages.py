"""What a traced operation belongs to: the stage that the caller named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
