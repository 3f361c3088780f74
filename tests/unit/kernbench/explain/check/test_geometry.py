"""Blocks as rows of bytes."""

import numpy as np
import pytest

from kernbench.explain.check.geometry import layout_of


def test_a_block_without_gaps_is_one_row() -> None:
    layout = layout_of("f32", "4,8", "")
    assert layout.spans(100) == [(100, 100 + 128)]
    assert (layout.nbytes, layout.span_bytes, layout.item_bytes) == (128, 128, 4)


@pytest.mark.parametrize(
    ("shape", "strides"), [("3,4", "10,1"), ("2,3,4", "100,10,1"), ("4,3", "1,8"), ("1,5", "7,2")]
)
def test_the_bytes_of_rows_are_those_of_the_elements_in_their_order(
    shape: str, strides: str
) -> None:
    lengths, steps = (tuple(map(int, each.split(","))) for each in (shape, strides))
    expected = [
        2 * int(np.dot(index, steps)) + byte for index in np.ndindex(lengths) for byte in range(2)
    ]
    layout = layout_of("f16", shape, strides)
    assert [each for span in layout.spans(0) for each in range(*span)] == expected
    assert layout.span_bytes == max(expected) + 1
