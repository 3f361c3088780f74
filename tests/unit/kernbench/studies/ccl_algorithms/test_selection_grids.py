"""The rows of the selection for grids of SIPs, on computed times."""

from kernbench.studies.ccl_algorithms.rows import GRIDS, AlgorithmRow, places
from kernbench.studies.ccl_algorithms.selection import as_yaml, grid_choices, tables_of
from runtime.ccl.selection import Choice
from tests.support.algorithm_rows import rows, steps

ON_RINGS = rows(ring=steps(300_000, 100))
SIZES = (1024, 2048, 4096)


def on_grids(ring: tuple[int, ...], torus: tuple[int, ...]) -> list[AlgorithmRow]:
    """Rows on the first grid; `torus` gains everywhere on the second one."""
    return [
        AlgorithmRow(
            collective="all_reduce",
            algorithm=name,
            ranks=grid.ranks,
            nbytes=nbytes,
            time_ps=time_ps,
            skew_ps=0,
            wrong=0,
            grid=str(grid),
            cubes=cubes,
        )
        for grid in GRIDS
        for cubes in grid.cubes
        for name, times in (("ring", ring), ("torus", torus))
        for nbytes, time_ps in zip(
            SIZES, times if grid is GRIDS[0] or name == "ring" else (1, 1, 1), strict=True
        )
    ]


def test_an_algorithm_of_grids_is_selected_from_the_size_on_from_which_it_is_the_fastest() -> None:
    # 1021 is within 2 % of 1002, 1023 is not.
    of_grids = on_grids((1000, 1002, 1000), (1, 1021, 500))
    assert grid_choices([*ON_RINGS, *of_grids]) == (
        Choice(algorithm="torus", from_bytes=1024, from_cubes=2, on_grid=True),
    )
    of_grids = on_grids((1000, 1002, 1000), (1, 1023, 500))
    [choice] = grid_choices([*ON_RINGS, *of_grids])
    assert choice.from_bytes == 4096


def test_an_algorithm_that_is_slower_at_the_largest_size_is_not_selected() -> None:
    assert grid_choices([*ON_RINGS, *on_grids((9, 9, 100), (1, 1, 103))]) == ()
    assert grid_choices(ON_RINGS) == ()


def test_the_row_for_grids_stands_before_those_for_rings() -> None:
    tables = tables_of([*ON_RINGS, *on_grids((9, 9, 9), (1, 1, 1))])
    assert as_yaml(tables)[2:] == [
        "    all_reduce:",
        "      - {from_bytes: 1024, from_cubes: 2, on_grid: true, algorithm: torus}",
        "      - {algorithm: ring}",
    ]


def test_points_on_grids_end_at_the_given_maximum() -> None:
    assert not list(places(32_767))
    assert {nbytes for _, _, nbytes in places(131_072)} == {32_768, 65_536, 131_072}
