"""Names that do not fit into their slices never lie over one another, nor over the line of another one."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warfence.show.timeline.labels import place

RIGHT = 600.0
WANTED = st.lists(st.tuples(st.floats(0, RIGHT), st.text("abcdefgh", min_size=1, max_size=20)), max_size=25)


@pytest.mark.slow
@given(WANTED, st.integers(1, 4))
def test_labels_keep_apart(wanted: list[tuple[float, str]], rows: int) -> None:
    placed, left_out = place(wanted, rows, RIGHT)
    assert len(placed) + left_out == len(wanted)
    assert all(label.end <= RIGHT and 0 <= label.row < rows for label in placed)
    for a, b in combinations(placed, 2):
        if a.row == b.row:
            assert a.end <= b.x or b.end <= a.x
        else:
            lower, upper = sorted((a, b), key=lambda label: label.row)
            assert not lower.x <= upper.x <= lower.end


def test_labels_from_right_to_left_stand_like_a_stair() -> None:
    placed, left_out = place([(30.0, "third"), (20.0, "second"), (10.0, "first")], 3, RIGHT)
    assert [(label.text, label.row) for label in placed] == [("third", 0), ("second", 1), ("first", 2)]
    assert left_out == 0
    assert place([(10.0, "first"), (10.0, "at the same place")], 3, RIGHT)[1] == 1
