"""What every test of this folder shares: the reason that skips `gpu` tests, and hypothesis profiles."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from parity_tests.plugin import skip_without_gpu

# CI replays the same examples every time and keeps no database; elsewhere each run looks at new ones.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.hookimpl(trylast=True)  # after -m and -k have removed what will not run
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_gpu(items)
