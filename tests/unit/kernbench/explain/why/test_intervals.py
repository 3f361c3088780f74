"""Unions of intervals against a count of the instants that they cover."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernbench.explain.why.intervals import Coverage, Intervals, by_priority, length_ps, union

SPAN_PS = 40
PAIRS = st.lists(st.tuples(st.integers(0, SPAN_PS), st.integers(0, SPAN_PS)).map(sorted))


def intervals(pairs: list[list[int]]) -> Intervals:
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def covered(pairs: list[list[int]]) -> NDArray[np.bool_]:
    instants = np.zeros(SPAN_PS, np.bool_)
    for begin, end in pairs:
        instants[begin:end] = True
    return instants


@given(PAIRS)
def test_the_length_of_a_union_counts_every_instant_once(pairs: list[list[int]]):
    assert length_ps(intervals(pairs)) == covered(pairs).sum()


@given(PAIRS)
def test_a_union_is_disjoint_and_ascending(pairs: list[list[int]]):
    begins, ends = union(*intervals(pairs))
    assert (begins[1:] > ends[:-1]).all()


@given(st.lists(PAIRS, max_size=4))
def test_an_instant_belongs_to_the_first_layer_that_covers_it(layers: list[list[list[int]]]):
    owner = np.full(SPAN_PS, len(layers))
    for number in range(len(layers) - 1, -1, -1):
        owner[covered(layers[number])] = number
    expected = [int((owner == number).sum()) for number in range(len(layers) + 1)]
    assert by_priority([intervals(each) for each in layers], SPAN_PS) == expected


def test_what_lies_outside_of_the_run_does_not_count():
    assert by_priority([intervals([[-5, 3], [8, 99]])], 10) == [5, 5]


@given(PAIRS, st.integers(0, SPAN_PS))
def test_coverage_is_the_covered_time_before_an_instant(pairs: list[list[int]], time_ps: int):
    until = Coverage.of(*intervals(pairs)).until(np.array([time_ps]))
    assert until[0] == covered(pairs)[:time_ps].sum()
