"""The small model, made once for all tests of speculation."""

from __future__ import annotations

import pytest

from tests.testing.paged import shared_small_model
from warfence.testing.small import SmallModel


@pytest.fixture(scope="session")
def small() -> SmallModel:
    return shared_small_model()
