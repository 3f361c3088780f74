"""Values of a key along an axis, and labels that do not overlap."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench.sweep.figures_axes import (
    CHARACTER_PX,
    fitting,
    is_wide,
    key_scale,
    plain,
    value_text,
)


@pytest.mark.parametrize(
    ("values", "name", "positions"),
    [
        ((64, 128, 256), "log", (64, 128, 256)),
        ((1, 2, 5, 10, 20, 50), "log", (1, 2, 5, 10, 20, 50)),
        ((2, 3, 4, 5), "linear", (2, 3, 4, 5)),
        ((0, 1, 10, 100), "linear", (0, 1, 10, 100)),
        ((10**15, 10**15 + 1, 10**15 + 3), "linear", (1e15, 1e15 + 1, 1e15 + 3)),
        ((64, 128), "linear", (64, 128)),
        ((64,), "linear", (64,)),
        (("ring", "mesh", "tree"), "linear", (0, 1, 2)),
        (("null", 100), "linear", (0, 1)),
    ],
)
def test_values_that_grow_by_factors_stand_on_a_logarithmic_scale(
    values: tuple[int | str, ...], name: str, positions: tuple[float, ...]
):
    scale = key_scale(values)
    assert (scale.name, scale.positions) == (name, positions)


@given(
    st.lists(
        st.tuples(st.integers(0, 2000), st.integers(1, 300)),
        min_size=1,
        unique_by=lambda label: label[0],
    )
)
def test_labels_that_are_shown_do_not_overlap(labels: list[tuple[int, int]]):
    places, sizes = [place for place, _ in labels], [size for _, size in labels]
    shown = fitting(places, sizes)
    ends = [(places[at] - sizes[at] / 2, places[at] + sizes[at] / 2) for at in shown]
    assert shown
    assert ends == sorted(ends)
    assert all(left[1] < right[0] for left, right in pairwise(ends))


def test_all_labels_are_shown_where_there_is_room_else_at_equal_distances():
    places = [100.0 * at for at in range(10)]
    assert fitting(places, [99 - CHARACTER_PX] * 10) == list(range(10))
    assert fitting(places, [150.0] * 10) == [0, 2, 4, 6, 8]


def test_numbers_of_very_different_magnitude_are_wide():
    assert is_wide([1, 100])
    assert not is_wide([0, 100])
    assert not is_wide([10, 100])


def test_a_long_word_is_shortened_in_the_middle_and_a_dollar_starts_no_formula():
    assert value_text("a" * 20 + "b" * 20) == "a" * 13 + "…" + "b" * 14
    assert value_text(16384) == "16384"
    assert plain("$x$") == r"\$x\$"
