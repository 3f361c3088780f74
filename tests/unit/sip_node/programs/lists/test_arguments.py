"""The key of an argument: equal for two arguments which differ in addresses alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from runtime.core.dtypes import float16, float32
from runtime.core.launch_numbers import packed
from runtime.device.kernels.rowwise import RowOperand, RowTensor
from runtime.device.regions.regions import Region
from runtime.language.value import Pointer
from sip_node.programs.lists.arguments import Argument
from sip_node.programs.lists.not_listed import NotListed
from sip_node.programs.lists.open_ids import OpenId
from sip_node.programs.lists.opened_arguments import OpenedArguments
from sip_node.programs.lists.places import PointerPlace
from sip_node.programs.lists.recorder import BasedPointer

ROW, COLUMN = RowTensor("x", "row", float32), RowTensor("x", "column", float32)


def key(each: object, *, is_own: bool = False) -> object:
    return Argument(each, is_own=is_own).key


def scaled_by(factor: object) -> Callable[..., object]:
    return lambda x: (x, factor)


def with_default(x: object, factor: float = 2.0) -> object:
    return x, factor


FACTOR = 0.0


def of_global(factor: float) -> Callable[..., object]:
    """A function with a global variable, as of a module that a user has edited."""
    return FunctionType((lambda x: (x, FACTOR)).__code__, {"FACTOR": factor, "__name__": "user"})


@dataclass(frozen=True)
class OfAUser:
    number: int


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0, False),
        (None, 0),
        ("a", b"a"),
        ((1, 2), (1, 2, 3)),
        (((1,), 2), (1, (2,))),
        (float16, float32),
        (Pointer(8, float16), Pointer(8, float32)),
        (scaled_by(1), scaled_by(1.0)),
        (scaled_by(None), scaled_by("")),
        (scaled_by(scaled_by(1)), scaled_by(scaled_by(2))),
        (partial(with_default, factor=1.0), partial(with_default, factor=2)),
        (of_global(0.0), of_global(-0.0)),
        (partial(with_default, 1), partial(with_default, True)),
        (RowOperand(ROW, Pointer(0, float32)), RowOperand(COLUMN, Pointer(0, float32))),
        (Region((0, 0), ((3, (1, 1)),)), Region((0, 0), ((3, (1, 2)),))),
        (np.add, np.subtract),
        (min, max),
    ],
    ids=range(19),
)
def test_arguments_that_differ_for_a_kernel_have_different_keys(one: object, other: object) -> None:
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "make",
    [
        lambda: of_global(float("nan")),
        lambda: (1, "text", None, 2.5, (float32,)),
        lambda: scaled_by((1, 2.0)),
        lambda: partial(with_default, factor=float("inf")),
        lambda: Region((0, 4), ((3, (1, 1)),)),
        lambda: with_default,
    ],
    ids=range(6),
)
def test_equal_arguments_have_equal_keys(make: Callable[[], object]) -> None:
    assert key(make()) == key(make())
    assert hash(key(make())) == hash(key(make()))


def test_functions_of_other_code_have_different_keys() -> None:
    functions: list[Callable[[int], int]] = [lambda x: x + 1, lambda x: x + 1]
    assert key(functions[0]) != key(functions[1])


def test_a_default_is_part_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(with_default)
    monkeypatch.setattr(with_default, "__defaults__", (3.0,))
    assert key(with_default) == before
    monkeypatch.setattr(with_default, "__defaults__", (3,))
    assert key(with_default) != before


def test_a_function_that_calls_itself_has_a_key() -> None:
    def countdown(count: int) -> int:
        return countdown(count - 1) if count else 0

    assert key(countdown) == key(countdown)


def test_pointers_differ_by_their_addresses_alone_which_are_in_the_order_of_the_key() -> None:
    def arguments(first: int, second: int, third: int) -> tuple[Any, ...]:
        row = RowOperand(ROW, Pointer(second, float32))
        return Pointer(first, float16), (row, 7, (Pointer(third, float32),))

    one = Argument(arguments(16, 32, 48), is_own=False)
    other = Argument(arguments(1600, 32, 16), is_own=False)
    assert one.key == other.key
    assert (one.addresses, other.addresses) == ([16, 32, 48], [1600, 32, 16])
    first, (row, number, (third,)) = OpenedArguments(()).of(arguments(16, 32, 48))
    assert [each.base for each in (first, row.pointer, third)] == [0, 1, 2]
    assert (type(row), row.tensor, number) == (RowOperand, ROW, 7)


def test_floats_differ_by_their_values_alone_which_are_in_the_order_of_the_key() -> None:
    def argument(*numbers: float) -> Any:
        first, second, third, fourth = numbers
        function = partial(scaled_by((first, 2)), factor=second)
        return function, RowOperand(ROW, Pointer(0, float32)), (third, True, fourth)

    one = Argument(argument(0.5, -0.0, math.nan, 1e300), is_own=False)
    other = Argument(argument(2.5, 0.0, math.inf, 2.0), is_own=False)
    assert one.key == other.key
    assert other.numbers == [2.5, 0.0, math.inf, 2.0]
    assert packed(one.numbers) == packed([0.5, -0.0, math.nan, 1e300])


def adds(x: float, y: float) -> float:
    return sum((x, y))


def calls_itself(x: float, count: int, factor: float = 0.5) -> float:
    return calls_itself(x * factor, count - 1) if count else x


@pytest.mark.parametrize(
    ("argument", "reads_all"),
    [
        *((adds, True), (scaled_by(adds), True), (sum, True), (calls_itself, True)),
        *((with_default, False), (max, False)),
    ],
    ids=range(6),
)
def test_all_numbers_of_a_function_that_may_call_sum_or_itself_by_its_name_are_read(
    argument: object, *, reads_all: bool
) -> None:
    assert Argument(argument, is_own=False).reads_all == reads_all


@pytest.mark.parametrize(
    "argument",
    [
        [1, 2],
        {"a": 1},
        {1, 2},
        np.zeros(3),
        np.float32(1),
        object(),
        OfAUser(1),
        print,
        open,
        scaled_by([1]),
        scaled_by(Pointer(0, float32)),
        partial(with_default, Pointer(0, float32)),
        OfAUser,
    ],
    ids=range(13),
)
def test_what_may_change_or_is_not_examined_has_no_key(argument: object) -> None:
    with pytest.raises(NotListed):
        key(argument)


def test_a_list_is_an_argument_of_kernels_of_kernbench_only() -> None:
    pointers = [Pointer(8, float32), Pointer(16, float32)]
    assert Argument(pointers, is_own=True).addresses == [8, 16]
    opened = OpenedArguments(()).of(pointers)
    assert [each.base for each in opened] == [0, 1]


def test_a_pointer_without_an_address_moves_and_has_no_address_to_read() -> None:
    pointer = BasedPointer(1, OpenId({}, 8), float32)
    moved = (2 + pointer) - 1
    assert moved.place == PointerPlace(1, 12, (), float32)
    for read in (int, hash, lambda each: each.address, lambda each: each == pointer):
        with pytest.raises(NotListed):
            read(pointer)
    with pytest.raises(NotListed):
        pointer + 1.5
