"""The numbers of a launch: formulas of arguments, and floats that have one."""

import math
import operator

import msgspec
import pytest

from runtime.core.launch_numbers import (
    ComputedNumber,
    GivenNumber,
    LaunchNumber,
    number_of_record,
    packed,
    unpacked,
)


def test_a_formula_is_computed_from_the_arguments_in_the_order_of_its_operations() -> None:
    formula = ComputedNumber(
        operator.sub, (1.0, ComputedNumber(operator.mul, (GivenNumber(1), GivenNumber(0))))
    )
    assert formula.of((0.1, 3.0)) == 1.0 - 3.0 * 0.1


def test_a_number_of_a_launch_is_a_float_that_keeps_its_formula_in_a_record() -> None:
    number = LaunchNumber.computed(GivenNumber(1), (0.5, -0.0))
    assert packed([number]) == packed([-0.0])
    assert number_of_record(number) is number
    assert type(number_of_record(2)) is float
    with pytest.raises(TypeError):
        msgspec.msgpack.encode(number)


def test_packed_numbers_are_equal_if_all_bits_are() -> None:
    numbers = (0.0, -0.0, math.inf, 5e-324, 0.1)
    assert unpacked(packed(numbers)) == numbers
    assert packed([0.0]) != packed([-0.0])
    assert packed([math.nan]) == packed([float("nan")])
    assert not unpacked(b"")
