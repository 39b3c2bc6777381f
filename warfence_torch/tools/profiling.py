"""A trace of torch's own profiler, of all threads, so that the lanes are in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch._C._profiler import _ExperimentalConfig  # the only way to say it: by itself a profile is of one thread
from torch.profiler import ProfilerActivity, profile


@contextmanager
def profiled(path: Path) -> Iterator[None]:
    """Profile all that runs inside, and write a Chrome trace to `path`."""
    on_device = [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
    with profile(
        activities=[ProfilerActivity.CPU, *on_device],
        experimental_config=_ExperimentalConfig(profile_all_threads=True),
        acc_events=True,
    ) as made:
        yield
    made.export_chrome_trace(str(path))
