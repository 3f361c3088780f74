"""The values of launches on several chips, which exchange them by messages.

The records of all chips, in the order in which they were entered, are one program: a send writes
into the ring of its peer before the peer reads there.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from runtime.core.errors import PhysAddrError
from runtime.core.trace import OpRecord
from runtime.language.value import Array
from sip_node.chip.exchanges.chips_of_lp import ChipsOfLp
from sip_node.chip.launches.launch_values import (
    BlockUse,
    BytesInMemory,
    LaunchValues,
    MemoryPlace,
)


class SharedValues:
    """The values of `records`."""

    def __init__(self, chips: ChipsOfLp, records: Sequence[OpRecord]) -> None:
        # Others are those of CPUs, links and arrivals, which have no elements.
        of_blocks = [each for each in records if each.dtype]
        self._numbers = {id(each): number for number, each in enumerate(of_blocks)}
        self.values = LaunchValues(of_blocks, Memories(chips).place_of)
        self.checksums: Array = np.zeros(len(of_blocks) + 1, np.uint32)
        """The CRC-32 of each of them, and 0."""

    def compute(self) -> None:
        """Compute all of a repetition."""
        self.checksums[:-1] = self.values.compute()

    def numbers_of(self, records: Sequence[OpRecord]) -> list[int]:
        """The numbers of the records of one chip among all; -1 for one without elements."""
        return [self._numbers.get(id(each), -1) for each in records]


class ValuesOfChip:
    """The values of the records of one chip among those of all."""

    def __init__(self, shared: SharedValues, records: Sequence[OpRecord]) -> None:
        self._shared, self._numbers = shared, shared.numbers_of(records)

    def blocks(self, uses: Iterable[BlockUse]) -> list[BytesInMemory]:
        """The blocks of memory among those of records, which other launches have elsewhere."""
        numbers = self._numbers
        return self._shared.values.blocks([(numbers[number], place) for number, place in uses])

    def set_number(self, number: int, index: int, value: float) -> None:
        """Let an input of a record be another number."""
        self._shared.values.set_number(self._numbers[number], index, value)

    def compute(self) -> Array:
        """The CRC-32 of each record; `SharedValues` has computed the values of all chips."""
        return self._shared.checksums[self._numbers]


class Memories:
    """The memories of all chips."""

    def __init__(self, chips: ChipsOfLp) -> None:
        self._chips = chips

    def place_of(self, address: int) -> MemoryPlace | None:
        """The memory of an address; None for registers."""
        chips = self._chips
        try:
            sip, _ = chips.chips[0].context.locate(address)
        except PhysAddrError:
            return None
        return chips.of_sip(sip).place_of(address)

    def is_external(self, address: int) -> bool:
        """Whether an address is in HBM or SRAM."""
        place = self.place_of(address)
        return place is not None and not place.is_local

    def locate(self, address: int) -> tuple[int, int]:
        """The SIP of an address, and the node of its memory there."""
        return self._chips.chips[0].context.locate(address)
