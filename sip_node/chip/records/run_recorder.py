"""Collects the rows of the tables of one SIP, and passes them on in chunks.

The rows of an operation or a step are packed where it ends, and come here in pieces of any number
of rows. Every text is passed on once, before the first row that refers to it.
"""

from collections.abc import Callable, Iterable
from types import FrameType

from runtime.core.run_tables import OPS, PROGRAMS, RANK_PROGRAM, RunTable
from runtime.language.caller import UNKNOWN_LINE, is_language, location
from runtime.wire.fields import CHUNK_BYTES, CHUNK_TEXTS, TEXT_LENGTH
from sip_node.chip.records.call_rows import CallRows

RecordSink = Callable[[str, bytes, tuple[str, ...]], None]
"""Takes the name of a table, rows of it, and the texts which follow those that it has received."""
_KEPT_BYTES = 1 << 18
"""Rows of a table that are kept before they are passed on."""


class RunRecorder:
    """The recorder of one SIP; only a run with records has one."""

    def __init__(self, sink: RecordSink) -> None:
        self._sink = sink
        self._index_of: dict[str, int] = {}
        self._new_texts: list[str] = []
        # By name: the hash of a table is computed from all its columns.
        self._pending: dict[str, _PendingRows] = {}
        self._programs = RANK_PROGRAM
        self._kept_programs: list[bytes] | None = None
        self.calls = CallRows(self)
        """The calls of programs, with the blocks that they use."""
        self.ending: Callable[[], None] | None = None
        """Adds the rows that are complete at the end only."""

    def text(self, text: str) -> int:
        """The index of a text in the list of texts of the SIP; of a long one, its beginning."""
        index = self._index_of.get(text)
        if index is None:
            index = self._index_of[text] = len(self._index_of)
            self._new_texts.append(text[:TEXT_LENGTH])
            if len(self._new_texts) == CHUNK_TEXTS:
                # Without rows: those at hand would refer to texts that are still to come.
                self._pass_on(OPS, b"")
        return index

    def new_program(self) -> int:
        """The number of the next kernel that starts."""
        self._programs += 1
        return self._programs

    def keep_programs(self) -> list[bytes]:
        """A list that receives every row of a program from now on, until `end_keeping`."""
        self._kept_programs = list[bytes]()
        return self._kept_programs

    def end_keeping(self) -> None:
        """Keep no more rows of programs."""
        self._kept_programs = None

    @property
    def programs(self) -> int:
        """The number of kernels that have started."""
        return self._programs

    def repeat_programs(
        self, rows: Iterable[bytes], count: int, moved_ps: int, first: int, command: int, line: str
    ) -> None:
        """Add kept rows of `count` kernels again, `moved_ps` later: as the kernels behind those
        that have started, where they were behind number `first`, launched by `command` at `line`.
        """
        packer, moved, text = PROGRAMS.packer, self._programs - first, self.text(line)
        self._programs += count
        for row in rows:
            program, cube, pe, kernel, thread, _, _, begin_ps, end_ps = packer.unpack(row)
            begin_ps, end_ps = begin_ps + moved_ps, end_ps + moved_ps
            packed = packer.pack(
                program + moved, cube, pe, kernel, thread, command, text, begin_ps, end_ps
            )
            self.add(PROGRAMS, packed)

    @staticmethod
    def is_language(frame: FrameType) -> bool:
        """Whether a frame is of what is between a kernel and the chip."""
        return is_language(frame)

    def line(self, frame: FrameType) -> int:
        """The text of the line that a frame executes."""
        return self.text(location(frame))

    def unknown_line(self) -> int:
        """The text of a line that was not found."""
        return self.text(UNKNOWN_LINE)

    def add(self, table: RunTable, rows: bytes) -> None:
        """Append consecutive packed rows to a table."""
        if self._kept_programs is not None and table is PROGRAMS:
            self._kept_programs.append(rows)
        pending = self._pending.get(table.name)
        if pending is None:
            pending = self._pending[table.name] = _PendingRows(table)
        pending.pieces.append(rows)
        pending.nbytes += len(rows)
        if pending.nbytes >= _KEPT_BYTES:
            self._pass_on_rows(pending)

    def flush(self) -> None:
        """The run has ended: pass on all rows that are kept."""
        if self.ending is not None:
            self.ending()
        self.calls.flush()
        for pending in self._pending.values():
            self._pass_on_rows(pending)

    def _pass_on_rows(self, pending: "_PendingRows") -> None:
        table, rows = pending.table, b"".join(pending.pieces)
        pending.pieces.clear()
        pending.nbytes = 0
        most = CHUNK_BYTES // table.row_bytes * table.row_bytes
        for start in range(0, len(rows), most):
            self._pass_on(table, rows[start : start + most])

    def _pass_on(self, table: RunTable, rows: bytes) -> None:
        texts, self._new_texts = tuple(self._new_texts), []
        self._sink(table.name, rows, texts)


class _PendingRows:
    """Rows of a table that are not passed on yet."""

    def __init__(self, table: RunTable) -> None:
        self.table, self.nbytes = table, 0
        self.pieces: list[bytes] = []
