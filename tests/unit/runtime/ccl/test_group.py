"""Groups whose ranks are a grid of SIPs in the machine."""

import pytest

from runtime.ccl.group import is_grid
from tests.support.mock_group import system
from tests.support.topologies import variant


@pytest.mark.parametrize(
    ("columns", "rows", "members", "expected"),
    [
        (3, 2, range(6), True),
        (3, 2, range(4), False),
        (6, 1, range(6), False),
    ],
)
def test_a_grid_has_all_sips_of_at_least_two_rows_and_columns(
    columns: int, rows: int, members: range, expected: bool
) -> None:
    for wraps in (False, True):
        topology = system(columns * rows, grid=(columns, rows), wraps=wraps)
        assert is_grid(members, topology) is expected


def test_sips_in_a_ring_or_at_a_switch_are_no_grid() -> None:
    assert not is_grid(range(4), system(4))
    at_a_switch = variant(
        system__sips__count=4, system__sips__topology="torus_2d", system__sips__fabric="switch"
    )
    assert not is_grid(range(4), at_a_switch)
