"""Integers with guards: what a program computes and decides holds wherever its guards hold."""

import operator
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sip_node.programs.lists.guarded_integers import GuardedInteger, OpenVariables, variables

IDS = [(x, y) for x in range(12) for y in range(5)]
ADDRESSES = (4096, 12288)


def decisions(ids: Sequence[Any], first: Any, second: Any) -> list[Any]:
    """Results that a kernel may compute from its ids and two addresses."""
    x, y = ids
    offset = x * 64 + y
    row, column = (x * 3 + y) // 8, (x * 3 + y) % 8
    return [
        offset < 300,
        offset + 64 <= 512 - y,
        min(max(500 - offset, 0), 64) + 0,
        row,
        column + 0,
        (x << 2) - 5,
        x == 4,
        y != 3,
        bool(x - 2),
        max(x, y) * 3,
        first + 4 * offset - first,
        first + 64 * x < second,
        (first + 8 * y) % 8,
        first + offset * 4 == second,
        -x,
        7 - y,
        x // 3,
        (x * 8 + 3) // 8,
    ]


def plain(results: Sequence[Any]) -> list[int]:
    """The results in the recorded program, without reading what is open."""
    return [each.value if isinstance(each, GuardedInteger) else each for each in results]


def recorded(ids: tuple[int, int]) -> tuple[OpenVariables, list[Any]]:
    opened = OpenVariables(variables(ids, ADDRESSES))
    axes = [opened.program_id(axis) for axis in (0, 1)]
    return opened, decisions(axes, opened.address(0, 0), opened.address(1, 0))


@pytest.mark.parametrize("ids", [(0, 0), (3, 4), (7, 2), (11, 1)])
def test_a_program_computes_what_it_computes_with_integers(ids: tuple[int, int]):
    _, results = recorded(ids)
    assert plain(results) == decisions(ids, *ADDRESSES)


def of(result: Any, values: Sequence[int]) -> Any:
    """The result in another program."""
    if not isinstance(result, GuardedInteger):
        return result
    return result.number + sum(factor * values[each] for each, factor in result.factors.items())


@pytest.mark.parametrize("ids", [(0, 0), (3, 4), (5, 1), (7, 2)])
def test_a_program_that_keeps_the_guards_computes_the_same_formulas(ids: tuple[int, int]):
    opened, results = recorded(ids)
    kept, draw = 0, random.Random(ids[0])
    for other in IDS:
        for _ in range(4):
            addresses = [4 * draw.randrange(512, 4096) for _ in ADDRESSES]
            values = variables(other, addresses)
            if all(guard.holds(values) for guard in opened.guards()):
                kept += 1
                found = [of(each, values) for each in results]
                assert found == decisions(other, *addresses)
    own = variables(ids, ADDRESSES)
    assert all(guard.holds(own) for guard in opened.guards())
    assert kept < len(IDS) * 4


def test_moving_an_address_reads_nothing():
    opened = OpenVariables(variables((3,), ADDRESSES))
    moved = opened.address(1, 0) + opened.program_id(0) * 256 + 8
    assert moved.value == ADDRESSES[1] + 3 * 256 + 8
    assert opened.guards() == ()


@pytest.mark.parametrize(
    "read",
    [
        *(int, float, operator.index, abs, operator.inv),
        *(lambda x: x * x, lambda x: 100 // (x + 1), lambda x: x & 3, lambda x: x / 2),
        *(hash, str),
    ],
    ids=range(11),
)
def test_any_other_use_holds_for_this_id_alone(read: Callable[[Any], Any]):
    opened = OpenVariables(variables((3,), ()))
    assert read(opened.program_id(0)) == read(3)
    guards = opened.guards()
    kept = [x for x in range(10) if all(guard.holds(variables((x,), ())) for guard in guards)]
    assert kept == [3]


def test_a_difference_of_equal_sums_is_a_number():
    opened = OpenVariables(variables((3,), ADDRESSES))
    address = opened.address(0, 64)
    assert address - opened.address(0, 0) == 64
    assert opened.guards() == ()
