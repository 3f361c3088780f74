"""The axes of strided blocks, merged."""

from runtime.core.strided_axes import descriptor_axes, merged_axes


def test_axes_that_are_one_axis_in_memory_are_merged() -> None:
    assert merged_axes((2, 3, 4), (12, 4, 1)) == [(24, 1)]
    assert merged_axes((2, 3, 4), (30, 10, 1)) == [(6, 10), (4, 1)]
    assert merged_axes((2, 3, 4), (60, 10, 1)) == [(2, 60), (3, 10), (4, 1)]
    assert merged_axes((2, 1, 4), (4, 77, 1)) == [(8, 1)]


def test_a_descriptor_ends_with_elements_that_follow_each_other() -> None:
    assert descriptor_axes((3, 5), (1, 3)) == [(3, 1), (5, 3), (1, 1)]
    assert descriptor_axes((1, 1), (9, 9)) == [(1, 1)]
