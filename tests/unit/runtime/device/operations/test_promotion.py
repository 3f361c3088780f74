"""The types of results, as PyTorch 2.15 gives them."""

import pytest

from runtime.core.dtypes import (
    ALL,
    DType,
    bfloat16,
    boolean,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)
from runtime.device.operations.promotion import is_number, promoted, type_name, wrapped

ROWS = [
    (float16, float32, float32),
    (float16, bfloat16, float32),
    (float32, float64, float64),
    (int8, int32, int32),
    (uint8, int64, int64),
    (int64, float16, float16),
    (boolean, int8, int8),
    (boolean, bfloat16, bfloat16),
    (boolean, boolean, boolean),
]


@pytest.mark.parametrize(("a", "b", "result"), ROWS)
def test_the_wider_type_and_the_higher_kind_win(a: DType, b: DType, result: DType):
    assert promoted(a, b) == promoted(b, a) == result


def test_two_types_of_a_byte_have_no_common_type_here():
    with pytest.raises(TypeError, match="uint8 and int8 promote to int16, which this hardware"):
        promoted(uint8, int8)


def test_an_integer_beside_integers_wraps_round_as_in_pytorch():
    assert wrapped(300, int8) == 44
    assert wrapped(-1, uint8) == 255
    assert wrapped(3_000_000_000, int32) == -1294967296
    assert wrapped(0.5, float16) == 0.5


def test_every_type_has_the_name_of_pytorchs_messages():
    assert [type_name(each) for each in (int8, uint8, int64, float16)] == [
        "Char",
        "Byte",
        "Long",
        "Half",
    ]
    assert all(type_name(each) for each in ALL)


def test_complex_numbers_and_texts_are_no_operands():
    assert not is_number(1j)
    assert not is_number("1")
    assert is_number(True)
