"""The passes of an operation, and their functions."""

import pytest

from runtime.language.chains.passes import Pass, passes
from runtime.language.functions import NAMES, REDUCTIONS
from runtime.model.schema.pe_schema import MathCycles


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_operation_has_a_cost_in_the_topology_file(name: str) -> None:
    steps = passes(name)
    assert steps
    used = {function for step in steps for function in (*step.functions, *step.after)}
    assert used <= set(MathCycles.__struct_fields__)


def test_every_cost_in_the_topology_file_is_that_of_an_operation() -> None:
    used = {function for name in NAMES - {"softmax"} for function in passes(name)[0].functions}
    assert used == set(MathCycles.__struct_fields__)


@pytest.mark.parametrize("name", sorted(NAMES - {"softmax"}))
def test_an_operation_other_than_softmax_makes_one_pass(name: str) -> None:
    (step,) = passes(name)
    assert step.reduces == (name in REDUCTIONS)
    assert (len(step.functions), step.after) == (1, ())


def test_a_running_sum_scans_every_vector() -> None:
    (step,) = passes("cumsum")
    assert step == Pass(("cumsum",), scans=True)
    assert not any(each.scans for name in NAMES - {"cumsum"} for each in passes(name))


def test_comparisons_cost_the_same_and_bitwise_operations_too() -> None:
    assert passes("lt") == passes("ne") == (Pass(("compare",)),)
    assert passes("bitwise_or") == passes("bitwise_xor") == (Pass(("bitwise",)),)


def test_softmax_finds_the_maximum_sums_the_exponentials_and_takes_the_quotients() -> None:
    largest, total, quotient = passes("softmax")
    assert (largest.functions, total.functions, quotient.functions) == (
        ("max",),
        ("exp", "sum"),
        ("exp", "mul"),
    )
    assert (largest.reduces, total.reduces, quotient.reduces) == (True, True, False)
    # One reciprocal of the sum instead of a division for each element.
    assert total.after == ("div",)
