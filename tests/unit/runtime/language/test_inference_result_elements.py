"""Results with and without data."""

import numpy as np

from runtime.core.dtypes import int32
from runtime.language.inference import result_elements
from runtime.language.value import Value


def test_a_result_has_data_if_all_operands_have():
    x, without = Value((2,), int32, np.array([1, 2], np.int32)), Value((2,), int32, None)
    result = result_elements("add", (x, 3), int32)
    assert result is not None
    assert result.tolist() == [4, 5]
    assert result_elements("add", (x, without), int32) is None
