"""A row that all PEs of a launch use, which each cube reads once.

If every PE loaded the row, the slice that has it would send it once to each. Instead each PE of a
cube loads a part of it and stores that to its own slice; behind a barrier, it loads the parts of
all PEs of its cube.
"""

from typing import NamedTuple

from runtime.language import tl
from runtime.language.value import Pointer, Value


class SharedRow(NamedTuple):
    """The elements [first, last) that a PE loads, where it stores them, and where the PEs of its
    cube store theirs: each `width` elements but the last one.
    """

    part: tuple[int, int]
    own: Pointer
    parts: tuple[Pointer, ...]
    width: int

    def loading(self, row: Pointer) -> tl.PendingValue:
        """Start to load the part of this PE."""
        first, last = self.part
        return tl.load_async(row + first, (1, last - first))

    def storing(self, part: Value) -> tl.PendingResult:
        """Start to store the part of this PE."""
        return tl.store_async(self.own, part)

    def gathering(self, columns: int) -> tuple[Value, list[tl.PendingValue]]:
        """The row, and the loads of its parts, which start now."""
        row = tl.empty((1, columns), self.own.dtype)
        loads = list[tl.PendingValue]()
        for number, part in enumerate(self.parts):
            first, last = number * self.width, min((number + 1) * self.width, columns)
            loads.append(tl.load_async(part, (1, last - first), out=row[:, first:last]))
        return row, loads
