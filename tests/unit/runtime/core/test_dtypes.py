"""Element types: names, sizes, and the numbers they hold."""

import ml_dtypes
import numpy as np
import pytest

from runtime import torch
from runtime.core import dtypes
from runtime.core.dtypes import ALL, DType


def test_every_type_is_found_by_the_numpy_type_it_stands_for() -> None:
    assert [dtypes.from_numpy(dtype.numpy) for dtype in ALL] == list(ALL)


@pytest.mark.parametrize(
    ("name", "itemsize"),
    [
        ("f16", 2),
        ("bf16", 2),
        ("f32", 4),
        ("f64", 8),
        ("i8", 1),
        ("i32", 4),
        ("i64", 8),
        ("u8", 1),
        ("bool", 1),
        ("f8e4m3", 1),
        ("f8e5m2", 1),
    ],
)
def test_the_sizes_of_the_types(name: str, itemsize: int) -> None:
    [dtype] = [dtype for dtype in ALL if dtype.name == name]
    assert (dtype.itemsize, dtype.is_floating_point) == (itemsize, "f" in name)


def test_types_show_the_name_that_pytorch_uses() -> None:
    assert repr(torch.bfloat16) == "torch.bfloat16"
    assert torch.half is torch.float16
    assert (torch.float, torch.double) == (torch.float32, torch.float64)
    assert (torch.int, torch.long) == (torch.int32, torch.int64)
    assert repr(torch.bool) == "torch.bool"
    assert isinstance(torch.int8, torch.dtype)
    assert [repr(each) for each in (torch.float8_e4m3fn, torch.float8_e5m2)] == [
        "torch.float8_e4m3fn",
        "torch.float8_e5m2",
    ]


@pytest.mark.parametrize("unknown", [np.uint16, np.complex64])
def test_an_unsupported_type_is_refused_with_the_supported_types(unknown: type) -> None:
    with pytest.raises(
        TypeError,
        match="does not exist on this hardware; convert to one of float16, bfloat16, float32",
    ):
        dtypes.from_numpy(np.dtype(unknown))


@pytest.mark.parametrize(
    ("dtype", "number", "held"),
    [
        (dtypes.int8, 127, True),
        (dtypes.int8, 128, False),
        (dtypes.int8, -128, True),
        (dtypes.int32, 2.0, True),
        (dtypes.int32, 2.5, False),
        (dtypes.int32, 1 << 31, False),
        (dtypes.float16, 0.1, True),
        (dtypes.bfloat16, 1e30, True),
        (dtypes.int64, (1 << 63) - 1, True),
        (dtypes.int64, 1 << 63, False),
        (dtypes.uint8, 255, True),
        (dtypes.uint8, -1, False),
        (dtypes.boolean, 1, True),
        (dtypes.boolean, 2, False),
    ],
)
def test_an_integer_type_holds_integers_in_its_range(
    dtype: DType, number: float, held: bool
) -> None:
    assert dtype.holds(number) is held


@pytest.mark.parametrize("dtype", [each for each in ALL if each.is_floating_point], ids=repr)
def test_a_type_counts_up_to_the_first_integer_that_it_lacks(dtype: DType) -> None:
    most = 2 << dtype.fraction_bits
    found = [int(np.array(each).astype(dtype.numpy)) == each for each in (most - 1, most, most + 1)]
    assert found == [dtype.counts(each) for each in (most - 1, most, most + 1)]
    assert dtype.counts(-most)


def test_an_integer_type_counts_in_its_range() -> None:
    assert dtypes.int8.counts(-128)
    assert not dtypes.int8.counts(128)


def test_bfloat16_is_the_type_of_ml_dtypes() -> None:
    assert dtypes.bfloat16.numpy == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("dtype", [each for each in ALL if each.is_floating_point], ids=repr)
def test_the_step_after_1_has_the_fraction_bits_of_the_type(dtype: DType) -> None:
    assert dtype.limits.eps == 2.0**-dtype.fraction_bits
    assert dtype.limits.max == dtype.greatest == float(np.asarray(dtype.greatest, dtype.numpy))


def test_a_type_by_its_name_has_the_bytes_of_an_element_and_bytes_of_a_host_have_one() -> None:
    assert [dtypes.BY_NAME[name].itemsize for name in ("u8", "f16", "f32")] == [1, 2, 4]
