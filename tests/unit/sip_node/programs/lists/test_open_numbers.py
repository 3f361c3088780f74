"""Numbers that stay open: the arithmetic of floats, to the last bit, and nothing else."""

import copy
import math
import operator
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import pytest

from runtime.core.dtypes import float32
from runtime.core.launch_numbers import packed
from runtime.language.value import Value
from sip_node.programs.lists.not_listed import ReadsNumber
from sip_node.programs.lists.open_numbers import MOST_OPERATIONS, OpenNumber

# In a tuple, since a test runner reads what it finds in a module.
OPEN = tuple(map(OpenNumber.given, range(2)))
VALUE = Value((4,), float32, None, 0)


@pytest.mark.parametrize(
    "formula",
    [
        lambda a, b: a,
        lambda a, b: a + b,
        lambda a, b: 1 - a * b,
        lambda a, b: (a - 0.1) / 3 - b * 2,
        lambda a, b: -(0.3 - a) + +b,
        lambda a, b: 0.1 + (a + b) * (a - b) * 1e200,
        lambda a, b: a + 0.0 - (b + -0.0),
        lambda a, b: 10**17 * a - b / -7,
    ],
    ids=range(8),
)
@pytest.mark.parametrize(
    "numbers",
    [
        (0.1, 0.2),
        (-0.0, 0.0),
        (0.0, -0.0),
        (1e308, 1e308),
        (5e-324, 3.0),
        (math.inf, -math.inf),
        (math.nan, 1.0),
    ],
)
def test_an_open_number_computes_what_floats_compute(
    formula: Callable[[Any, Any], Any], numbers: tuple[float, float]
) -> None:
    opened = formula(*OPEN).formula
    assert packed([opened.of(numbers)]) == packed([formula(*numbers)])


@pytest.mark.parametrize(
    "read",
    [
        bool,
        int,
        float,
        complex,
        str,
        repr,
        hash,
        abs,
        round,
        math.floor,
        math.sqrt,
        math.isnan,
        np.sqrt,
        np.asarray,
        copy.copy,
        lambda a: f"{a:.3}",
        lambda a: "%f" % a,  # noqa: UP031 - another way to a text
        lambda a: a == 0.5,
        lambda a: a != a,  # noqa: PLR0124 - what is refused
        lambda a: a < 3,
        lambda a: 3 >= a,  # noqa: SIM300 - the reflected method
        lambda a: max(a, 0.0),
        lambda a: min(0.0, a),
        lambda a: sorted([a, 1.0]),
        lambda a: a in (1.0, 2.0),
        lambda a: {a: 1},
        lambda a: 1 if a else 2,
        lambda a: a // 2,
        lambda a: 8.0 % a,
        lambda a: divmod(a, 4),
        lambda a: a**2,
        lambda a: 2**a,
        lambda a: 1 / a,
        lambda a: a / 0,
        lambda a: a / 0.0,
        lambda a: a * True,
        lambda a: a * np.float64(2),
        lambda a: np.float32(2) * a,
        lambda a: a + 1j,
        lambda a: a.is_integer(),
        lambda a: a.real,
        lambda a: math.fsum([a]),
        float.hex,
    ],
    ids=range(43),
)
def test_any_other_use_reads_the_number(read: Callable[[Any], object]) -> None:
    with pytest.raises((ReadsNumber, TypeError)) as error:
        read(OPEN[0])
    # A method of the class in C refuses what is no float, and so ends the recording too.
    if isinstance(error.value, ReadsNumber):
        assert error.value.places == {0}


def test_a_number_that_is_read_names_all_from_which_it_follows() -> None:
    with pytest.raises(ReadsNumber) as error:
        float(OPEN[0] * 2 + OpenNumber.given(5))
    assert error.value.places == {0, 5}


def test_a_divisor_is_read_alone() -> None:
    with pytest.raises(ReadsNumber) as error:
        OPEN[0] / OPEN[1]
    assert error.value.places == {1}


def test_a_number_has_the_class_of_floats_and_no_other() -> None:
    opened: Any = OPEN[0]
    assert isinstance(opened, float)
    assert isinstance(opened, Real)
    assert not isinstance(opened, int | Value | tuple)
    match opened:
        case float():
            pass
        case _:
            pytest.fail("a pattern of floats takes an open number")


@pytest.mark.parametrize(
    "operation",
    [*(operator.add, operator.sub, operator.mul, operator.truediv, operator.pow), operator.lt],
)
def test_an_operation_with_a_value_is_one_of_the_value(operation: Callable[..., Any]) -> None:
    # The operator of the value finds no kernel that runs.
    with pytest.raises(RuntimeError, match="kernel"):
        operation(OPEN[0], VALUE)


def grown(number: Any) -> Any:
    for _ in range(MOST_OPERATIONS):
        number = number * number
    return number


def test_a_formula_that_grows_with_a_loop_is_read() -> None:
    with pytest.raises(ReadsNumber):
        grown(OPEN[0])
