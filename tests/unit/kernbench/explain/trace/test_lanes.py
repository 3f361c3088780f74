import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernbench.explain.trace.lanes import apart, level

INTERVALS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=30)


@given(INTERVALS)
def test_slices_of_a_lane_do_not_overlap_and_no_lane_is_spare(intervals):
    begins = np.array([begin for begin, _ in intervals], np.int64)
    ends = begins + np.array([length for _, length in intervals], np.int64)

    lanes = apart(begins, ends)

    most = 0
    for lane in np.unique(lanes):
        members = np.flatnonzero(lanes == lane)
        order = members[np.lexsort((ends[members], begins[members]))]
        assert (begins[order][1:] >= ends[order][:-1]).all()
    for time in begins:
        most = max(most, int(((begins <= time) & ((ends > time) | (begins == time))).sum()))
    assert len(np.unique(lanes)) <= max(most, 1)


def test_a_level_has_one_value_for_each_time_at_which_it_changes():
    times, values = level(
        [
            (np.array([0, 5, 5]), np.array([1, 1, 1])),
            (np.array([5, 9, 12]), np.array([-1, -1, -1])),
        ]
    )

    assert times.tolist() == [0, 5, 9, 12]
    assert values.tolist() == [1, 2, 1, 0]
