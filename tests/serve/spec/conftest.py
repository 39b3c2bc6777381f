"""The small model, made once for all tests of speculation."""

from __future__ import annotations

import pytest

from tests.parity.suite.paged import shared_small_model
from warfence.parity.small import SmallModel


@pytest.fixture(scope="session")
def small() -> SmallModel:
    return shared_small_model()
