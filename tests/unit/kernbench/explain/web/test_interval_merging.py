"""Long tracks are joined where their gaps are shortest; short ones and active times are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench.explain.web.interval_merging import joined, limit_of_tracks


@pytest.mark.parametrize(
    ("counts", "most", "limit"),
    [
        ([2, 3], 10, 3),
        # The short track keeps its 2; the others share the rest.
        ([2, 100, 100], 12, 5),
        ([7], 3, 3),
        ([5, 5, 5], 2, 1),
        ([], 5, 1),
    ],
)
def test_the_limit_gives_short_tracks_all_and_long_ones_the_same(
    counts: list[int], most: int, limit: int
) -> None:
    assert limit_of_tracks(counts, most) == limit


def test_intervals_are_joined_where_gaps_are_shortest() -> None:
    begins, ends = np.array([0, 12, 40, 53, 90]), np.array([10, 20, 50, 60, 95])
    found = joined(begins, ends, 3)
    # Gaps of 2, 20, 3 and 30: the two largest stay.
    assert [each.tolist() for each in found] == [
        [0, 40, 90],
        [20, 60, 95],
        [0, 2, 4],
        [2, 2, 1],
        [18, 17, 5],
    ]


def test_equal_gaps_are_kept_evenly_over_the_track() -> None:
    begins = np.arange(0, 1000, 10)
    found = joined(begins, begins + 6, 4)
    assert found.counts.tolist() == [25] * 4
    # 25 operations of 6 ps, one each 10 ps.
    assert found.active_ps.tolist() == [25 * 6] * 4
    assert (found.ends - found.begins).tolist() == [24 * 10 + 6] * 4


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=40),
    st.integers(1, 45),
)
def test_joined_intervals_cover_every_operation_once(
    operations: list[tuple[int, int]], most: int
) -> None:
    begins = np.array(sorted(begin for begin, _ in operations))
    ends = begins + np.array([length for _, length in operations])
    found = joined(begins, ends, most)
    assert len(found.begins) <= most
    assert int(found.counts.sum()) == len(operations)
    for begin, end, first, count, active_ps in zip(*found, strict=True):
        own = range(first, first + count)
        assert (begin, end) == (begins[first], max(ends[own]))
        instants = {at for row in own for at in range(begins[row], ends[row])}
        assert active_ps >= len(instants)
