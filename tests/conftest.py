"""What every test of this folder shares: the reason that skips `gpu` tests, and hypothesis profiles."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

from parity_tests.plugin import skip_without_gpu

# CI replays the same examples every time and keeps no database; elsewhere each run looks at new ones.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

KERNELS = ("warfence.parity.kernels", "warfence_torch.kernels", "warfence_jax.kernels")
if find_spec("beartype"):  # a machine with a device may have no more than pytest
    install_import_hook(KERNELS, "shapes.check")  # before anything imports them


@pytest.hookimpl(trylast=True)  # after -m and -k have removed what will not run
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_gpu(items)
