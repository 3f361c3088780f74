"""Roundings to 8-bit floating-point types against the tables of the OCP specification."""

import ml_dtypes
import numpy as np
import pytest

from runtime import tl
from runtime.core.dtypes import DType, from_numpy
from runtime.language.operations import converted, element
from tests.support.kernels import computed, refused, value

EIGHT = [tl.float8e4nv, tl.float8e5]
GREATEST = {tl.float8e4nv: 448.0, tl.float8e5: 57344.0}
"""OCP 8-bit Floating Point Specification (OFP8), revision 1.0, table 2: maximum normal."""
LEAST = {tl.float8e4nv: 2.0**-9, tl.float8e5: 2.0**-16}
"""The same table: minimum subnormal."""


@pytest.mark.parametrize("dtype", EIGHT, ids=repr)
def test_every_element_is_a_float32_and_comes_back(dtype: DType) -> None:
    codes = np.arange(256, dtype=np.uint8).view(dtype.numpy)
    wide = converted(codes, tl.float32)
    finite = np.isfinite(wide)
    assert (wide[finite].max(), wide[wide > 0].min()) == (GREATEST[dtype], LEAST[dtype])
    # The infinities of f8e5m2 exist in memory, and a conversion saturates them.
    np.testing.assert_array_equal(
        converted(wide, dtype).view(np.uint8)[finite], codes.view(np.uint8)[finite]
    )
    assert np.isnan(converted(wide, dtype).astype(np.float32)[np.isnan(wide)]).all()


@pytest.mark.parametrize("dtype", EIGHT, ids=repr)
@pytest.mark.parametrize("source", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_what_is_beyond_the_greatest_saturates(dtype: DType, source: type) -> None:
    most = GREATEST[dtype]
    # 1.125 is exact in every source.
    given = np.array([np.inf, -np.inf, np.nan, most, 1.125 * most]).astype(source)
    found = converted(given, dtype).astype(np.float64)
    np.testing.assert_array_equal(found, [most, -most, np.nan, most, most])
    assert float(element(1e300, dtype)) == most


@pytest.mark.parametrize(
    ("dtype", "number", "nearest"),
    [
        # Between 16 and 18, and between 18 and 20, the even fraction.
        (tl.float8e4nv, 17.0, 16.0),
        (tl.float8e4nv, 19.0, 20.0),
        (tl.float8e4nv, 2.0**-10, 0.0),
        (tl.float8e4nv, 1.5 * 2.0**-9, 2.0**-8),
        (tl.float8e5, 9.0, 8.0),
        (tl.float8e5, 11.0, 12.0),
        (tl.float8e5, 61439.0, 57344.0),
    ],
)
def test_the_nearest_element_is_taken_that_of_two_which_is_even(
    dtype: DType, number: float, nearest: float
) -> None:
    assert float(converted(np.array(number), dtype)) == nearest


@pytest.mark.parametrize("dtype", EIGHT, ids=repr)
def test_integers_and_bools_convert_both_ways(dtype: DType) -> None:
    whole = np.array([-128, -3, 0, 1, 127], np.int8)
    rounded = computed(lambda: value(whole).to(dtype))
    assert rounded.astype(float).tolist() == [-128.0, -3.0, 0.0, 1.0, 128.0]
    assert converted(rounded, tl.int8).tolist() == [-128, -3, 0, 1, 127]
    assert converted(rounded, tl.int1).tolist() == [True, True, False, True, True]


def test_operands_of_both_types_are_not_mixed() -> None:
    a = np.ones((2, 2), tl.float8e4nv.numpy)
    b = np.ones((2, 2), tl.float8e5.numpy)
    assert refused(lambda: value(a) + value(b)).startswith(
        "add: operands have types f8e4m3, f8e5m2"
    )
    assert refused(lambda: tl.dot(value(a), value(b))).startswith(
        "gemm: a is f8e4m3 and b is f8e5m2; they must be equal: convert with x.to(dtype)"
    )
    assert refused(lambda: tl.arange(0, 18, tl.float8e4nv)).startswith("arange: 17 is not exact in")


def test_an_array_of_the_type_is_passed_as_a_pointer() -> None:
    assert from_numpy(np.dtype(ml_dtypes.float8_e4m3fn)) is tl.float8e4nv
    assert from_numpy(np.dtype(ml_dtypes.float8_e5m2)) is tl.float8e5
