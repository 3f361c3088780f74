"""The programs of a grid: their ids, the PEs that run them, and what is no grid."""

from itertools import product
from typing import Any

import pytest

from runtime.core.program_grid import ProgramGrid, checked_grid


@pytest.mark.parametrize("lengths", [(5,), (3, 2), (2, 3, 4)])
@pytest.mark.parametrize("pes", [1, 3, 7])
def test_each_program_runs_once_dealt_round_robin_with_axis_0_fastest(
    lengths: tuple[int, ...], pes: int
) -> None:
    grid = ProgramGrid(lengths)
    of_pe = [list(grid.dealt(pe, pes)) for pe in range(pes)]
    # `product` has its last axis fastest.
    in_order = [ids[::-1] for ids in product(*map(range, lengths[::-1]))]
    assert grid.count == len(in_order)
    assert [of_pe[n % pes][n // pes] for n in range(grid.count)] == in_order
    assert sum(map(len, of_pe)) == grid.count


def test_in_blocks_a_pe_runs_the_programs_from_its_first_one_to_that_of_the_next_pe() -> None:
    grid = ProgramGrid((3, 2), first=(0, 2, 3, 5))
    assert [list(grid.dealt(pe, 4)) for pe in range(4)] == [
        [(0, 0), (1, 0)],
        [(2, 0)],
        [(0, 1), (1, 1)],
        [(2, 1)],
    ]


RULE = "it is a tuple of 1 to 3 positive integers, such as (8,) or (4, 2)"


@pytest.mark.parametrize("grid", [(0,), (2, -1), (), (1, 1, 1, 1)])
def test_an_axis_without_programs_and_a_fourth_axis_are_refused(grid: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="grid") as raised:
        checked_grid(grid)
    assert str(raised.value) == f"grid {grid!r}: {RULE}"


@pytest.mark.parametrize("grid", [4, (2.0,), "8", (True,), {2: 1}])
def test_what_has_no_integers_is_refused(grid: Any) -> None:
    with pytest.raises(TypeError) as raised:
        checked_grid(grid)
    assert str(raised.value) == f"grid {grid!r}: {RULE}"
