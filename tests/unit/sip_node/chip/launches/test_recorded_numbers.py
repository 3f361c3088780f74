"""The numbers of records: which change with the arguments of a launch, and to what."""

import operator

from runtime.core.launch_numbers import (
    ComputedNumber,
    GivenNumber,
    LaunchNumber,
    NumberFormula,
    packed,
)
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.launches.recorded_numbers import RecordedNumbers
from tests.support.kept import kept

BLOCK, FIRST = Operand(0, (4,), "f32"), GivenNumber(0)
POSITIVE, NEGATIVE = (ComputedNumber(operator.add, (FIRST, zero)) for zero in (0.0, -0.0))
BEFORE = packed([1.0]), packed([2.0])


def record(pe: int, *formulas: NumberFormula) -> OpRecord:
    numbers = [LaunchNumber.computed(each, (1.0 + pe,)) for each in formulas]
    return OpRecord("pe_math", "add", 0, 1, 0, pe, inputs=(BLOCK, 0.5, *numbers))


def recorded() -> RecordedNumbers:
    records = [record(0, FIRST), record(1, FIRST), record(0), record(1, POSITIVE, NEGATIVE)]
    return RecordedNumbers(kept(records).numbers.values(), {(0, 0): 0, (0, 1): 1}, BEFORE)


def test_numbers_of_the_pes_whose_arguments_differ_change() -> None:
    numbers = recorded()
    assert not list(numbers.changed(BEFORE))
    assert list(numbers.changed((packed([5.0]), BEFORE[1]))) == [(0, 2, 5.0)]
    assert list(numbers.changed(BEFORE)) == [(0, 2, 1.0)]


def test_formulas_that_differ_in_the_sign_of_0_are_two() -> None:
    changed = list(recorded().changed((BEFORE[0], packed([-0.0]))))
    assert [(each, place) for each, place, _ in changed] == [(1, 2), (3, 2), (3, 3)]
    assert packed([number for *_, number in changed]) == packed([-0.0, 0.0, -0.0])


def test_a_number_that_has_other_bits_is_another_one() -> None:
    numbers = recorded()
    list(numbers.changed((packed([0.0]), BEFORE[1])))
    ((*_, number),) = numbers.changed((packed([-0.0]), BEFORE[1]))
    assert packed([number]) == packed([-0.0])
