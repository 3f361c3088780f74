"""Reorders the operands of a collective from the ranks of a process group to the numbers which an
algorithm gives them.
"""

from collections.abc import Sequence
from typing import cast

from runtime.core.requests import PerPe

_BY_RANK = {
    "all_gather": (2,),
    "all_gather_into_tensor": (2,),
    "reduce_scatter_tensor": (0,),
    "all_to_all_single": (0, 2),
    "all_to_all": (0, 1),
    "gather": (2,),
    "scatter": (0,),
}
"""The operands of each collective that have an element for every rank, or none."""

_ROOT = {"reduce": 3, "broadcast": 2, "gather": 3, "scatter": 3}
"""The operand of each collective that is a rank."""


def in_order(
    collective: str, operands: Sequence[object], order: Sequence[int]
) -> tuple[object, ...]:
    """The operands of a kernel of the collective, for an algorithm that gives number i to the rank
    `order[i]`. Their order is that of `runtime.ccl.algorithms`.
    """
    ordered = list(operands)
    for index in _BY_RANK.get(collective, ()):
        ordered[index] = _reordered(ordered[index], order)
    if collective in _ROOT:
        index = _ROOT[collective]
        ordered[index] = order.index(cast("int", ordered[index]))
    return tuple(ordered)


def _reordered(operand: object, order: Sequence[int]) -> object:
    if isinstance(operand, PerPe):
        return PerPe({pe: _reordered(each, order) for pe, each in operand.values.items()})
    by_rank = cast("tuple[object, ...]", operand)
    # Ranks other than the root of a gather or scatter have no element.
    return tuple(by_rank[rank] for rank in order) if by_rank else by_rank
