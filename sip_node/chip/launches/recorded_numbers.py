"""The numbers in the records of a launch that follow from the arguments of its kernels."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from runtime.core.launch_numbers import NumberFormula, unpacked


class _NumberUses(NamedTuple):
    """A number of a PE of the launch: its formula, and where it is an input: record and place of
    each, one behind the other.
    """

    pe: int
    formula: NumberFormula
    uses: "array[int]"


class RecordedNumbers:
    """The numbers `recorded` of a launch (`KeptRecords.numbers`), which `numbers` of the PEs in
    `places` have made, in the order of the PEs.
    """

    def __init__(
        self,
        recorded: "Iterable[tuple[int, int, NumberFormula, array[int]]]",
        places: Mapping[tuple[int, int], int],
        numbers: Sequence[bytes],
    ) -> None:
        self._numbers = numbers
        self._of_formula = [
            _NumberUses(places[cube, pe], formula, uses) for cube, pe, formula, uses in recorded
        ]

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
                for record, place in zip(uses[::2], uses[1::2], strict=True):
                    yield record, place, number
