"""Arithmetic of indices: affine blocks and boxes have the elements of numpy's arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from kernbench.triton.indices.index_arithmetic import computed, converted
from kernbench.triton.indices.index_values import Affine, IndexValue, Recipe, broadcast, expanded


@dataclass(frozen=True)
class Scalar:
    """A type of Triton, as far as index values read it."""

    name: str

    @property
    def scalar(self) -> "Scalar":
        return self

    def is_ptr(self) -> bool:
        return False


INT, WIDE, BOOL = Scalar("int32"), Scalar("int64"), Scalar("int1")
NO_RECIPE = Recipe(lambda *_: None, ())


def span(start: int, step: int, length: int = 16) -> IndexValue:
    return IndexValue(INT, (length,), affine=Affine(start, (step,)))


def of(name: str, dtype: Any, *operands: IndexValue) -> IndexValue:
    return computed(name, dtype, operands, NO_RECIPE)


@pytest.mark.parametrize("name", ["add", "sub"])
def test_sums_of_affine_blocks_are_affine(name: str) -> None:
    a, b = span(3, 2), span(-5, 7)
    result = of(name, INT, a, b)
    assert result.affine is not None
    exact = a.array + b.array if name == "add" else a.array - b.array
    assert (result.array == exact).all()


def test_a_product_that_wraps_round_is_no_affine_block() -> None:
    result = of("mul", INT, span(0, 1 << 28), IndexValue.constant(INT, 3, (16,)))
    assert result.affine is None
    assert (result.array == span(0, 1 << 28).array * np.int32(3)).all()


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge"])
@pytest.mark.parametrize("bound", [-4, 3, 10, 11, 1000])
def test_a_comparison_along_one_axis_is_a_box(name: str, bound: int) -> None:
    a, b = span(2, 3), IndexValue.constant(INT, bound, (16,))
    for operands in ((a, b), (b, a)):
        result = of(name, BOOL, *operands)
        assert result.box is not None
        exact = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
        assert (result.array == exact[name](*(each.array for each in operands))).all()


def test_the_intersection_of_boxes_is_a_box() -> None:
    rows = broadcast(
        expanded(of("lt", BOOL, span(0, 1), constant(5)), 1, NO_RECIPE), (16, 16), NO_RECIPE
    )
    columns = broadcast(
        expanded(of("ge", BOOL, span(0, 1), constant(9)), 0, NO_RECIPE), (16, 16), NO_RECIPE
    )
    both = of("bitwise_and", BOOL, rows, columns)
    assert both.box == ((0, 5), (9, 16))
    assert (both.array == (rows.array & columns.array)).all()


def repeated(mask: IndexValue, axis: int) -> IndexValue:
    return broadcast(expanded(mask, axis, NO_RECIPE), (16, 16), NO_RECIPE)


def constant(number: int) -> IndexValue:
    return IndexValue.constant(INT, number, (16,))


def test_quotients_and_remainders_go_towards_zero() -> None:
    a, b = span(-8, 1), constant(3)
    assert of("quotient", INT, a, b).array.tolist() == [int(each / 3) for each in range(-8, 8)]
    assert of("remainder", INT, a, b).array.tolist() == np.fmod(np.arange(-8, 8), 3).tolist()


def test_a_conversion_to_a_wider_type_keeps_the_affine_form() -> None:
    assert converted(span(1, 2), WIDE, NO_RECIPE).affine == Affine(1, (2,))
    narrow = converted(span(0, 100), Scalar("int8"), NO_RECIPE)
    assert narrow.affine is None
    assert (narrow.array == (np.arange(16) * 100).astype(np.int8)).all()
