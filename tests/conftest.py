"""What every test of this folder shares: the reason that skips `gpu` tests, and hypothesis profiles."""

from __future__ import annotations

import importlib.util
import os

import pytest
from hypothesis import settings

# CI replays the same examples every time and keeps no database; elsewhere each run looks at new ones.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def why_no_gpu() -> str | None:
    """Why `gpu` tests cannot run here, or None when they can. Imports torch, so it is asked only when it matters."""
    if importlib.util.find_spec("torch") is None:
        return "needs a CUDA device: torch is not installed, so none can be looked for"
    import torch

    if not torch.cuda.is_available():
        return f"needs a CUDA device: torch {torch.__version__} sees none"
    return None


@pytest.hookimpl(trylast=True)  # after -m and -k have removed what will not run
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needing = [item for item in items if item.get_closest_marker("gpu")]
    if needing and (reason := why_no_gpu()):
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=reason))
