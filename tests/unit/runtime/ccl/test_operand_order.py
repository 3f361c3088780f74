from inspect import signature

import pytest

from runtime.ccl.algorithms import pairwise, ring
from runtime.ccl.operand_order import in_order
from runtime.core.requests import PerPe

ORDER = (0, 2, 1)
"""Rank 2 has number 1, and rank 1 number 2."""

OPERANDS = {
    "all_reduce": ("shard", 8, "op"),
    "reduce": ("shard", 8, "op", 1),
    "broadcast": ("shard", 8, 1),
    "all_gather": ("shard", 8, ("a", "b", "c")),
    "all_gather_into_tensor": ("shard", 8, ("a", "b", "c")),
    "reduce_scatter_tensor": (("a", "b", "c"), 8, "op", "output"),
    "all_to_all_single": (("a", "b", "c"), 8, ("d", "e", "f")),
    "all_to_all": (("a", "b", "c"), ("d", "e", "f")),
    "gather": ("shard", 8, ("a", "b", "c"), 1),
    "scatter": (("a", "b", "c"), 8, "output", 1),
}
REORDERED: dict[object, object] = {
    ("a", "b", "c"): ("a", "c", "b"),
    ("d", "e", "f"): ("d", "f", "e"),
    1: 2,
}


@pytest.mark.parametrize("collective", OPERANDS)
def test_parts_and_roots_are_numbered_as_the_algorithm_does(collective: str) -> None:
    expected = tuple(REORDERED.get(each, each) for each in OPERANDS[collective])
    assert in_order(collective, OPERANDS[collective], ORDER) == expected


@pytest.mark.parametrize("collective", OPERANDS)
def test_the_operands_have_the_places_of_the_parameters_of_a_kernel(collective: str) -> None:
    kernel = getattr(ring, collective, None) or getattr(pairwise, collective)
    names = list(signature(kernel).parameters)[: len(OPERANDS[collective])]
    for name, operand in zip(names, OPERANDS[collective], strict=True):
        # A tuple in the table above is an operand with an element for every rank, 1 a root.
        by_rank = name in ("inputs", "outputs", "parts_sent", "parts_received")
        assert by_rank == isinstance(operand, tuple)
        assert (name == "root") == (operand == 1)


def test_operands_that_differ_from_pe_to_pe_are_reordered_on_each() -> None:
    operands = ("shard", 8, PerPe({(0, 0): ("a", "b", "c"), (0, 1): ()}), 1)
    _, _, outputs, root = in_order("gather", operands, ORDER)
    assert isinstance(outputs, PerPe)
    assert outputs.values == {(0, 0): ("a", "c", "b"), (0, 1): ()}
    assert root == 2
