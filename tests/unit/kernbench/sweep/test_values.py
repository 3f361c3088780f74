"""Lists and ranges of values as a user writes them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench.sweep.values import MOST_POINTS, listed, plain, scalar
from runtime.core.errors import UsageError

SMALL = st.integers(-1000, 1000)


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as refused:
        listed("--set key", text)
    problem = str(refused.value)
    assert "\n" not in problem
    assert problem.startswith(f"--set key={text}: ")
    return problem.removeprefix(f"--set key={text}: ")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("64,128,256", ["64", "128", "256"]),
        (" 1 , 2", ["1", "2"]),
        ("2..5", ["2", "3", "4", "5"]),
        ("2..8..3", ["2", "5", "8"]),
        ("-4..4..4", ["-4", "0", "4"]),
        ("64..512..x2", ["64", "128", "256", "512"]),
        ("64..500..x2", ["64", "128", "256"]),
        ("0.1..0.3..0.1", ["0.1", "0.2", "0.3"]),
        ("0.5..4..x2", ["0.5", "1", "2", "4"]),
        ("1,4..6,x", ["1", "4", "5", "6", "x"]),
        ("1e3..3e3..1e3", ["1000", "2000", "3000"]),
        ("channels,banks", ["channels", "banks"]),
        ("../data", ["../data"]),
        ("2..x", ["2..x"]),
        ("7..7", ["7"]),
    ],
)
def test_lists_and_ranges_are_expanded(text: str, values: list[str]):
    assert listed("--set key", text) == values


@given(SMALL, st.integers(0, 500), st.integers(1, 50))
def test_a_range_has_every_step_up_to_its_last_value(first: int, length: int, step: int):
    values = listed("--set key", f"{first}..{first + length}..{step}")
    assert values == [str(each) for each in range(first, first + length + 1, step)]


@given(st.integers(1, 1000), st.integers(1, 40), st.integers(2, 9))
def test_a_range_with_a_factor_has_every_power_up_to_its_last_value(
    first: int, count: int, factor: int
):
    powers = [first * factor**power for power in range(count) if first * factor**power < 10**29]
    assert listed("--set key", f"{first}..{powers[-1]}..x{factor}") == [str(n) for n in powers]


@given(st.decimals(0, 10, places=3), st.integers(1, 99), st.decimals("0.001", "0.1", places=3))
def test_steps_with_fractions_are_exact(first: Decimal, steps: int, step: Decimal):
    values = listed("--set key", f"{first}..{first + steps * step}..{step}")
    assert list(map(Decimal, values)) == [first + number * step for number in range(steps + 1)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no value; expected VALUE,VALUE or FIRST..LAST"),
        (",", "no value; expected VALUE,VALUE or FIRST..LAST"),
        ("1,,2", "an empty value; expected VALUE,VALUE or FIRST..LAST"),
        ("8..2", "8..2 is empty, 8 is more than 2"),
        ("0.5..2", "0.5..2 needs a step, as in 0.5..2..0.5 or 0.5..2..x2"),
        ("1..4..0", "1..4..0 needs a step above 0"),
        ("1..4..-1", "1..4..-1 needs a step above 0"),
        ("1..4..x1", "1..4..x1 needs a factor above 1 and a first value above 0"),
        ("0..4..x2", "0..4..x2 needs a factor above 1 and a first value above 0"),
        ("1..1e9", "1..1e9 has more than 10,000 values"),
        ("1..1e40", "1e40 has more than 30 digits"),
        ("1e-999999999..1..x10", "1e-999999999 has more than 30 digits"),
        ("1..6000,10001..16000", "more than 10,000 values"),
    ],
)
def test_wrong_lists_and_ranges_are_refused_in_one_line(text: str, problem: str):
    assert refusal(text) == problem


def test_a_range_may_have_as_many_values_as_a_sweep_points():
    assert len(listed("--set key", f"1..{MOST_POINTS}")) == MOST_POINTS


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64", 64),
        ("-3", -3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("false", False),
        ("null", None),
        ("banks", "banks"),
        ("nan", "nan"),
        ("1_000", "1_000"),
    ],
)
def test_a_value_has_the_type_that_it_has_in_a_file(text: str, value: object):
    assert (scalar(text), type(scalar(text))) == (value, type(value))
    assert scalar(plain(scalar(text))) == value
