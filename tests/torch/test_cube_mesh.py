"""The cubes of a SIP copy what one of them holds from one another, in stages."""

from collections import Counter
from collections.abc import Sequence

import pytest

from runtime.device.products.cube_mesh import CubeMesh, copy_tree

MESH = CubeMesh(width=4, height=4, pes=8, scratch_bytes=1 << 20)
ROWS = [tuple(range(4 * row, 4 * row + 4)) for row in range(4)]
COLUMNS = [tuple(range(column, 16, 4)) for column in range(4)]
LINES = [*ROWS, *COLUMNS, tuple(range(16))]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("home", range(16))
def test_every_cube_copies_from_the_home_or_from_a_cube_of_an_earlier_stage(
    home: int, line: Sequence[int]
):
    tree = copy_tree(MESH, home, tuple(line))
    assert sorted(tree) == sorted(line)
    for source, stage in tree.values():
        assert stage == 1 if source is None else tree[source][1] < stage


@pytest.mark.parametrize("line", [*ROWS, *COLUMNS])
@pytest.mark.parametrize("home", range(16))
def test_a_line_copies_in_two_stages(home: int, line: Sequence[int]):
    assert max(stage for _, stage in copy_tree(MESH, home, tuple(line)).values()) <= 2


def test_links_of_a_row_carry_three_of_four_parts_where_direct_copies_take_four():
    # Each of the four cubes holds a part, which the other three need: the bound of an end link.
    carried = Counter[tuple[int, int]]()
    for home in ROWS[0]:
        for cube, (source, _) in copy_tree(MESH, home, ROWS[0]).items():
            start = home if source is None else source
            step = 1 if cube > start else -1
            carried.update((each, each + step) for each in range(start, cube, step))
    assert max(carried.values()) == 3


def test_a_cube_outside_of_the_line_is_read_once():
    direct = [
        cube for cube, (source, _) in copy_tree(MESH, 6, COLUMNS[0]).items() if source is None
    ]
    assert direct == [4]
