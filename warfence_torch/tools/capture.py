"""Captures a CUDA graph so that nobody but the capturing code can break it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from warfence.host.quiet import no_collection


@contextmanager
def capturing(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, pool: Any = None) -> Iterator[None]:
    """What is enqueued inside goes into the graph. RuntimeError when CUDA refuses something.

    Other threads may call CUDA meanwhile (lanes, watchers, another framework): in torch's own default mode a call of theirs
    breaks the capture. No garbage is collected, because the end of an earlier graph breaks it too. Afterwards the current
    stream is the caller's, also behind a capture that failed.
    """
    try:
        with (
            no_collection(),
            warnings.catch_warnings(action="ignore", category=UserWarning),  # that a graph is empty: we look ourselves
            torch.cuda.stream(stream),
            torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"),
        ):
            yield
    except RuntimeError:
        _mend(stream)
        raise


def _mend(stream: torch.cuda.Stream) -> None:
    """A capture that CUDA broke off leaves torch's random numbers in it ("Offset increment outside graph capture ..."), until
    one that comes to its end."""
    with (
        suppress(RuntimeError),
        warnings.catch_warnings(action="ignore", category=UserWarning),
        torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream, capture_error_mode="thread_local"),
    ):
        pass
