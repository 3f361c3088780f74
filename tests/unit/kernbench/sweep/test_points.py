"""Points: the combinations of the values of parameters."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench.sweep.parameters import SIPS, Parameter, ParameterKind, sips_parameter
from kernbench.sweep.points import sweep_points
from kernbench.sweep.values import MOST_POINTS, Value
from runtime.core.errors import UsageError


def key(name: str, *values: Value) -> Parameter:
    return Parameter(name, ParameterKind.TOPOLOGY, name, values)


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=4, unique=True), max_size=4))
def test_points_are_all_combinations_and_the_last_parameter_varies_fastest(lists: list[list[int]]):
    parameters = [key(f"k{at}", *values) for at, values in enumerate([[1, 2], *lists])]
    points = sweep_points(parameters, is_zip=False)
    assert [point.values for point in points] == list(product([1, 2], *lists))
    assert len(set(points)) == len(points)


def test_a_zip_has_a_point_for_each_place_of_the_lists():
    points = sweep_points([key("a", 1, 2), key("b", "x", "y")], is_zip=True)
    assert [str(point) for point in points] == ["a=1 b=x", "a=2 b=y"]


def test_a_point_is_named_as_a_user_writes_it():
    points = sweep_points([key("w", None, 2), key("b", True, False)], is_zip=False)
    assert str(points[0]) == "w=null b=true"


def test_more_sips_cost_more():
    parameters = [key("a", 1, 2), sips_parameter("1,4")]
    assert [point.cost for point in sweep_points(parameters, is_zip=False)] == [1, 4, 1, 4]
    assert parameters[1].name == SIPS


@pytest.mark.parametrize(
    ("parameters", "is_zip", "problem"),
    [
        ([], False, "nothing is swept: give a key or an argument two values or more"),
        (
            [key("a", 1, 2), key("b", 1, 2, 3)],
            True,
            "--zip needs as many values for each: a has 2, b has 3",
        ),
        (
            [key("a", *range(101)), key("b", *range(100))],
            False,
            "10,100 points; a sweep has at most 10,000",
        ),
    ],
)
def test_sweeps_without_points_and_with_too_many_are_refused(
    parameters: list[Parameter], is_zip: bool, problem: str
):
    with pytest.raises(UsageError) as refused:
        sweep_points(parameters, is_zip=is_zip)
    assert str(refused.value) == problem


def test_the_largest_sweep_is_not_refused():
    parameters = [key("a", *range(100)), key("b", *range(100))]
    assert len(sweep_points(parameters, is_zip=False)) == MOST_POINTS
