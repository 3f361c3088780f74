"""The numbers in the records of a launch that follow from the arguments of its kernels."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from runtime.core.launch_numbers import LaunchNumber, NumberFormula, unpacked
from runtime.core.trace import OpRecord


class _NumberUses(NamedTuple):
    """A number of a PE of the launch: its formula, and where it is an input, as (record, place)."""

    pe: int
    formula: NumberFormula
    uses: list[tuple[int, int]]


class RecordedNumbers:
    """The numbers in `records`, which `numbers` of the PEs in `places` have made, in the order of
    the PEs.
    """

    def __init__(
        self,
        records: Sequence[OpRecord],
        places: Mapping[tuple[int, int], int],
        numbers: Sequence[bytes],
    ) -> None:
        self._numbers = numbers
        # By identity: formulas with 0.0 and with -0.0 are equal.
        of_formula = dict[tuple[int, int], _NumberUses]()
        for record, each in enumerate(records):
            for place, number in enumerate(each.inputs):
                if type(number) is LaunchNumber:
                    pe, formula = places[each.cube, each.pe], number.formula
                    known = of_formula.setdefault((pe, id(formula)), _NumberUses(pe, formula, []))
                    known.uses.append((record, place))
        self._of_formula = tuple(of_formula.values())

    def changed(self, numbers: Sequence[bytes]) -> Iterator[tuple[int, int, float]]:
        """The numbers that are others with `numbers` of the PEs than with those of the last call,
        as (record, place among its inputs, number).
        """
        before, self._numbers = self._numbers, numbers
        if numbers == before:
            return
        for pe, formula, uses in self._of_formula:
            if numbers[pe] != before[pe]:
                number = formula.of(unpacked(numbers[pe]))
                for record, place in uses:
                    yield record, place, number
