"""Medians and quartiles are those that everybody means, and ratios are taken round by round."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from warfence.bench.spread import Spread
from warfence.host.documents import plain


@pytest.mark.parametrize(
    "values", [[3.0], [2.0, 1.0], [5.0, 1.0, 3.0], [4.0, 1.0, 3.0, 2.0], [0.5, 9.0, 2.5, 2.5, 7.0]]
)
def test_median_and_quartiles_are_numpys(values: list[float]) -> None:
    spread = Spread.of(values)
    assert [spread.low, spread.median, spread.high] == pytest.approx(np.percentile(values, [25, 50, 75]))
    assert spread.values == tuple(values)


def test_a_drift_of_the_machine_cancels_in_a_ratio() -> None:
    slower_and_slower = [1.0, 2.0, 4.0]
    ratio = Spread.of(1.5 * v for v in slower_and_slower).over(Spread.of(slower_and_slower))
    assert (ratio.low, ratio.median, ratio.high) == (1.5, 1.5, 1.5)


def test_nothing_measured_is_no_spread() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        Spread.of([])


def test_json_and_back() -> None:
    spread = Spread.of([1.0, 2.0])
    assert msgspec.convert(plain(spread), Spread) == spread
