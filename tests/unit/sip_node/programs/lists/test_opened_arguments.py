"""Open numbers and pointers in arguments: each where the key has it, and nothing else."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from runtime.core.dtypes import float32
from runtime.device.kernels.elementwise import Formula, Loaded
from runtime.device.kernels.rowwise import RowOperand, RowTensor
from runtime.language.value import Pointer
from sip_node.programs.lists.arguments import Argument
from sip_node.programs.lists.opened_arguments import OpenedArguments


def scaled_by(factor: object) -> Callable[..., object]:
    return lambda x: (x, factor)


def with_defaults(x: object, first: float = 0.25, *, second: float = 0.5) -> object:
    return x, first, second


def recursive(number: float) -> Callable[[int], list[float]]:
    def counted(count: int) -> list[float]:
        return [number, *counted(count - 1)] if count else []

    return counted


def place(each: Any) -> int:
    return each.formula.place


@pytest.mark.parametrize(
    ("argument", "numbers"),
    [
        (0.5, 1),
        ((1.5, 2, (2.5, True)), 2),
        (partial(with_defaults, 0.1, second=0.2), 4),
        (partial(scaled_by((1.0, scaled_by(2.0))), 3.0), 3),
        (Formula("mul", (Loaded(0), 2.0), float32), 1),
        (Formula("add", (0.5, Loaded(0)), float32).value, 1),
        (recursive(1.25), 1),
        ((scaled_by(1.0), scaled_by(1.0)), 2),
        ((1, "text", None), 0),
        (math.inf, 1),
    ],
    ids=range(10),
)
def test_as_many_numbers_are_opened_as_the_key_has(argument: object, numbers: int) -> None:
    opened = OpenedArguments(())
    made = opened.of(argument)
    assert opened.numbers == len(Argument(argument, is_own=True).numbers) == numbers
    assert (made is argument) == (numbers == 0)


def test_numbers_have_their_places_in_the_order_of_the_key() -> None:
    function = partial(scaled_by((0.0, 1.0)), 2.0, y=3.0)
    made = OpenedArguments(()).of((function, with_defaults, 6.0))
    numbers = Argument((function, with_defaults, 6.0), is_own=True).numbers
    assert numbers == [0.0, 1.0, 2.0, 3.0, 0.25, 0.5, 6.0]
    _, factors = made[0].func("x")
    _, first, second = made[1]("x")
    given = [*factors, *made[0].args, made[0].keywords["y"], first, second, made[2]]
    assert list(map(place, given)) == list(range(7))


def test_a_number_that_is_read_stays_a_float() -> None:
    first, second = OpenedArguments({0}).of((0.5, 1.5))
    assert (first, place(second)) == (0.5, 1)


def test_a_function_that_calls_itself_calls_its_copy() -> None:
    made = OpenedArguments(()).of(recursive(1.25))
    assert list(map(place, made(3))) == [0, 0, 0]


def test_a_copy_changes_nothing_of_what_it_is_a_copy_of() -> None:
    function = scaled_by(1.0)
    made = OpenedArguments(()).of(function)
    assert function("x") == ("x", 1.0)
    assert (made.__name__, made.__module__) == (function.__name__, function.__module__)
    row = RowOperand(RowTensor("x", "row", float32), Pointer(8, float32))
    assert OpenedArguments(()).of(row) is not row
    assert row.pointer.address == 8


def test_a_function_of_open_numbers_alone_is_copied() -> None:
    kept = scaled_by(2)
    made = OpenedArguments(()).of((kept, with_defaults, 1.0))
    assert made[0] is kept
    assert made[1] is not with_defaults
