"""Windows of pools along an axis, against lists of their elements."""

from itertools import product

import pytest

from runtime.device.kernels.pool_windows import WindowAxis


def total(length: int, size: int, step: int, margin: int, apart: int) -> int:
    return max(0, (length + 2 * margin - apart * (size - 1) - 1) // step + 1)


AXES = [
    WindowAxis(length, total(length, size, step, margin, apart), size, step, margin, apart)
    for length, size, step, margin, apart in product(
        (4, 7, 12), (1, 2, 3), (1, 2, 4), (0, 1), (1, 2)
    )
    if margin <= size // 2 and total(length, size, step, margin, apart)
]


def elements(axis: WindowAxis, window: int) -> list[int]:
    """The elements of a window by the places in it; those outside of the axis too."""
    return [window * axis.step - axis.margin + place * axis.apart for place in range(axis.size)]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_windows_with_an_element_at_a_place_are_all_that_have_one(axis: WindowAxis):
    for place, first, start in product(range(axis.size), (0, 1), (0, 2)):
        expected = [
            window
            for window in range(first, axis.total)
            if start <= elements(axis, window)[place] < axis.length
        ]
        given = axis.with_element(place, (first, axis.total), (start, axis.length))
        assert list(range(*given)) == expected


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_the_elements_of_windows_hold_all_that_lie_on_the_axis(axis: WindowAxis):
    for first in range(axis.total):
        for last in range(first + 1, axis.total + 1):
            inside = {
                each
                for window in range(first, last)
                for each in elements(axis, window)
                if 0 <= each < axis.length
            }
            start, end = axis.elements((first, last))
            assert start >= 0
            assert end <= axis.length
            assert inside <= set(range(start, end))


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_the_windows_over_elements_hold_all_that_have_one(axis: WindowAxis):
    for start in range(axis.length):
        for end in range(start + 1, axis.length + 1):
            over = {
                window
                for window in range(axis.total)
                if set(elements(axis, window)) & set(range(start, end))
            }
            first, last = axis.windows((start, end))
            assert over <= set(range(first, last))
            assert 0 <= first <= last <= axis.total
