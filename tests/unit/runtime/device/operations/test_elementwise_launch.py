"""The common shape of the operands of an elementwise operation, as in PyTorch."""

import numpy as np
import pytest

from runtime.device.operations.elementwise_launch import broadcast_shape


@pytest.mark.parametrize(
    "shapes", [[(2, 3)], [(2, 3), (3,)], [(2, 1), (1, 3)], [(), (4,)], [(5, 1, 2), (3, 1), (1,)]]
)
def test_the_common_shape_is_that_of_numpy(shapes: list[tuple[int, ...]]):
    assert broadcast_shape(shapes) == np.broadcast_shapes(*shapes)


def test_shapes_that_differ_are_refused_with_the_text_of_pytorch():
    text = r"size of tensor a \(3\) must match the size of tensor b \(2\) at non-singleton dimen"
    with pytest.raises(RuntimeError, match=text + "sion 1"):
        broadcast_shape([(4, 3), (4, 2)])
