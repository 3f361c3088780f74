"""The rows of the calls of programs, and of the blocks that they use, for the records of a run.

A call has its row when its operation has ended, which may be long after the program went on. Rows
of a launch that is repeated are added again, with other numbers, times and addresses.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from runtime.core import dtypes
from runtime.core.run_tables import BLOCKS, CALLS, NONE, RunTable
from runtime.core.trace import Operand

if TYPE_CHECKING:
    import numpy as np

    Rows = np.ndarray[Any, np.dtype[Any]]

_ITEM_BYTES = {"u8": 1} | {dtype.name: dtype.itemsize for dtype in dtypes.ALL}
IN_TCM, IN_MEMORY = 0, 1
"""The places of a block."""
_ROWS = 1024
"""Rows that are packed before they are passed on."""
_BLOCK_START = Struct("<qBBqq")
_LAYOUT = Struct("<iii")


class RowSink(Protocol):
    """Takes texts and rows: the recorder of a SIP."""

    def text(self, text: str) -> int:
        """The index of a text."""
        ...

    def add(self, table: RunTable, rows: bytes) -> None:
        """Append consecutive packed rows to a table."""
        ...


class MovedExtent(NamedTuple):
    """The memory from physical address `begin` on lies `distance` bytes behind."""

    begin: int
    distance: int


class KeptCalls(NamedTuple):
    """The rows of a launch, whose first call had the number `first`; `begun` calls have begun."""

    calls: bytes
    blocks: bytes
    first: int
    begun: int


class CallRows:
    """Packs the rows of one SIP for `recorder`. `begun` calls have begun."""

    def __init__(self, recorder: RowSink) -> None:
        self._recorder = recorder
        self._pack, self._pack_block = CALLS.packer.pack, _BLOCK_START.pack
        self._calls: list[bytes] = []
        self._blocks: list[bytes] = []
        self._layouts: dict[tuple[tuple[int, ...], str, tuple[int, ...]], tuple[int, bytes]] = {}
        self._texts: dict[str, int] = {}
        self._keeps = False
        self.begun = self._first = 0

    def new_call(self) -> int:
        """The number of the next call that begins."""
        self.begun += 1
        return self.begun - 1

    def text(self, text: str) -> int:
        """The index of a text in the list of texts of the SIP."""
        index = self._texts.get(text)
        if index is None:
            index = self._texts[text] = self._recorder.text(text)
        return index

    def add(
        self,
        call: int,
        program: int,
        operation: str,
        line: int,
        times_ps: tuple[int, int],
        *,
        awaits: int = NONE,
        command: int = NONE,
        queue: tuple[str, int, int] = ("", 0, 0),
    ) -> None:
        """Add the row of a call; `queue` is the queue of a message, with its slots and those of
        the ring.
        """
        begin_ps, end_ps = times_ps
        name, slots, depth = queue
        of, to = self.text(operation), self.text(name)
        self._calls.append(
            self._pack(call, program, of, line, begin_ps, end_ps, awaits, command, to, slots, depth)
        )
        if len(self._calls) >= _ROWS and not self._keeps:
            self.flush()

    def add_blocks(self, call: int, access: int, place: int, blocks: Iterable[Operand]) -> None:
        """Add the rows of the blocks that a call uses, of one `BlockAccess`: behind pointers, with
        `IN_MEMORY`, or values in TCM.
        """
        rows, layouts, pack = self._blocks, self._layouts, self._pack_block
        for block in blocks:
            key = block.shape, block.dtype, block.strides
            layout = layouts.get(key)
            if layout is None:
                layout = layouts[key] = self._layout_of(*key)
            nbytes, packed = layout
            rows.append(pack(call, access, place, block.address, nbytes) + packed)

    def keep(self) -> None:
        """Keep the rows of kernels from now on, until `end_keeping` or the next `keep`."""
        self.flush()
        self._keeps, self._first = True, self.begun

    def end_keeping(self) -> None:
        """Keep no more rows."""
        self._keeps = False

    def kept(self) -> KeptCalls:
        """The rows since `keep`, all of kernels: no rank goes on beside a repeated launch."""
        assert self._keeps, "rows are kept from `keep` on"
        calls, blocks = b"".join(self._calls), b"".join(self._blocks)
        return KeptCalls(calls, blocks, self._first, self.begun - self._first)

    def repeat(
        self, kept: KeptCalls, programs: int, moved_ps: int, extents: Sequence[MovedExtent]
    ) -> None:
        """Add kept rows again: `programs` is added to the numbers of programs, `moved_ps` to times,
        and blocks of memory move with their extents.
        """
        import numpy as np

        later = self.begun - kept.first
        self.begun += kept.begun
        if not kept.calls:
            return
        calls = np.frombuffer(kept.calls, _dtype(CALLS)).copy()
        calls["call"] += later
        calls["program"] += programs
        calls["begin_ps"] += moved_ps
        calls["end_ps"] += moved_ps
        calls["awaits"][calls["awaits"] != NONE] += later
        blocks = np.frombuffer(kept.blocks, _dtype(BLOCKS)).copy()
        blocks["call"] += later
        _move(blocks, extents)
        self.flush()
        self._recorder.add(CALLS, calls.tobytes())
        if len(blocks):
            self._recorder.add(BLOCKS, blocks.tobytes())

    def flush(self) -> None:
        """Give the rows to the recorder."""
        self._pass_on(CALLS, self._calls)
        self._pass_on(BLOCKS, self._blocks)

    def _pass_on(self, table: RunTable, rows: list[bytes]) -> None:
        if rows:
            packed = b"".join(rows)
            rows.clear()
            self._recorder.add(table, packed)

    def _layout_of(
        self, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...]
    ) -> tuple[int, bytes]:
        text, nbytes = self._recorder.text, _ITEM_BYTES[dtype]
        for length in shape:
            nbytes *= length
        lengths, steps = ",".join(map(str, shape)), ",".join(map(str, strides))
        return nbytes, _LAYOUT.pack(text(dtype), text(lengths), text(steps))


def _move(blocks: "Rows", extents: Sequence[MovedExtent]) -> None:
    import numpy as np

    moved = dict(extents)
    if not any(moved.values()):
        return
    begins = np.array(sorted(moved), np.int64)
    distances = np.array([moved[int(begin)] for begin in begins], np.int64)
    rows = np.flatnonzero(blocks["in_memory"])
    places = np.searchsorted(begins, blocks["address"][rows], "right") - 1
    blocks["address"][rows] += distances[places]


def _dtype(table: RunTable) -> "np.dtype[Any]":
    import numpy as np

    return np.dtype([(each.name, str(each.packed)) for each in table.columns])
