"""Ids that stay open: sums, products with integers, quotients of multiples, and nothing else."""

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

from sip_node.programs.lists.not_listed import ReadsId
from sip_node.programs.lists.open_ids import OpenId

PE, CUBE = OpenId({0: 1}), OpenId({1: 1})


def value(each: OpenId, ids: tuple[int, int]) -> int:
    """The integer that an open id stands for in a program."""
    return each.number + sum(factor * ids[axis] for axis, factor in each.factors.items())


@pytest.mark.parametrize(
    "formula",
    [
        lambda pe, cube: cube * 8 + pe,
        lambda pe, cube: 3 + 2 * (pe - cube * 5 + 7) * 4,
        lambda pe, cube: -pe - (1 - cube) + 0 * pe,
        lambda pe, cube: 10 - (pe + pe) + cube - 4,
        lambda pe, cube: (pe + 2) * -3 - (cube - pe),
        lambda pe, cube: (cube * 8 - pe * 4 + 7) // 4,
        lambda pe, cube: (cube * 8 + pe * 4 - 7) // -4,
        lambda pe, cube: pe + (cube * 8 - 7) % 4,
        lambda pe, cube: operator.sub(*divmod(cube * 8 + pe * 12 - 9, 4)),
    ],
    ids=range(9),
)
@pytest.mark.parametrize("ids", [(0, 0), (5, 0), (3, 11)])
def test_an_open_id_computes_what_integers_compute(
    formula: Callable[[Any, Any], Any], ids: tuple[int, int]
) -> None:
    assert value(formula(PE, CUBE), ids) == formula(*ids)


@pytest.mark.parametrize(
    "read",
    [
        bool,
        int,
        float,
        str,
        repr,
        hash,
        abs,
        round,
        math.floor,
        operator.index,
        operator.inv,
        lambda pe: f"{pe}",
        lambda pe: pe == 0,
        lambda pe: pe != pe,  # noqa: PLR0124 - what is refused
        lambda pe: pe < 3,
        lambda pe: 3 >= pe,  # noqa: SIM300 - the reflected method
        lambda pe: max(pe, 0),
        lambda pe: pe // 2,
        lambda pe: (pe * 4 + 1) % 8,
        lambda pe: pe % 0,
        lambda pe: 8 % pe,
        lambda pe: pe / 2,
        lambda pe: divmod(pe, 4),
        lambda pe: pe**2,
        lambda pe: 1 << pe,
        lambda pe: pe & 1,
        lambda pe: pe * 0.5,
        lambda pe: 1.5 + pe,
        lambda pe: pe - 0.5,
        lambda pe: pe * pe,
        lambda pe: pe * True,
        lambda pe: [1, 2][pe],
        range,
        lambda pe: {pe},
        lambda pe: pe in (1, 2),
    ],
    ids=range(35),
)
def test_any_other_use_reads_the_id(read: Callable[[Any], object]) -> None:
    with pytest.raises(ReadsId):
        read(PE)
