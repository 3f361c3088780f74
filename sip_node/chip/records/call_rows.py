"""The rows of the calls of programs, and of the blocks that they use, for the records of a run.

A call has its row when its operation has ended, which may be long after the program went on. The
compiled rows add those of a launch that is repeated again, with other numbers, times and addresses.
"""

from typing import Protocol

from runtime.core.dtypes import BY_NAME
from runtime.core.run_tables import BLOCKS, CALLS, RunTable
from runtime.core.trace import Operand


class RowSink(Protocol):
    """Takes texts and rows: the recorder of a SIP."""

    def text(self, text: str) -> int:
        """The index of a text."""
        ...

    def add(self, table: RunTable, rows: bytes) -> None:
        """Append consecutive packed rows to a table."""
        ...


class CallRows:
    """Packs the rows of one SIP for `recorder`. `begun` calls have begun."""

    def __init__(self, recorder: RowSink) -> None:
        self._recorder = recorder
        self._pack, self._pack_block = CALLS.packer.pack, BLOCKS.packer.pack
        self._layouts: dict[tuple[tuple[int, ...], str, tuple[int, ...]], tuple[int, ...]] = {}
        self.begun = 0

    def new_call(self) -> int:
        """The number of the next call that begins."""
        self.begun += 1
        return self.begun - 1

    def text(self, text: str) -> int:
        """The index of a text in the list of texts of the SIP."""
        return self._recorder.text(text)

    def add(self, *values: int) -> None:
        """Add the row of a call, the values in the order of the columns."""
        self._recorder.add(CALLS, self._pack(*values))

    def add_block(self, call: int, access: int, place: int, block: Operand) -> None:
        """Add the row of a block that a call uses, with a `BlockAccess`: behind a pointer, with
        `IN_MEMORY`, or a value in TCM.
        """
        key = block.shape, block.dtype, block.strides
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = self._layout_of(*key)
        self._recorder.add(BLOCKS, self._pack_block(call, access, place, block.address, *layout))

    def flush(self) -> None:
        """Give the rows to the recorder, which has each of them already."""

    def _layout_of(
        self, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...]
    ) -> tuple[int, ...]:
        text, nbytes = self._recorder.text, BY_NAME[dtype].itemsize
        for length in shape:
            nbytes *= length
        lengths, steps = ",".join(map(str, shape)), ",".join(map(str, strides))
        return nbytes, text(dtype), text(lengths), text(steps)
