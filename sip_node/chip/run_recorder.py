"""Collects the rows of the tables of one SIP, and passes them on in chunks.

The rows of an operation or a step are packed where it ends, and come here in pieces of any number
of rows. Every text is passed on once, before the first row that refers to it.
"""

from collections.abc import Callable
from types import FrameType

from runtime.core.run_tables import OPS, RANK_PROGRAM, RunTable
from runtime.language.caller import UNKNOWN_LINE, is_language, location
from runtime.wire.fields import CHUNK_BYTES, CHUNK_TEXTS, TEXT_LENGTH

RecordSink = Callable[[str, bytes, tuple[str, ...]], None]
"""Takes the name of a table, rows of it, and the texts which follow those that it has received."""
_KEPT_BYTES = 1 << 18
"""Rows of a table that are collected before they are passed on."""


class RunRecorder:
    """The recorder of one SIP; only a run with records has one."""

    def __init__(self, sink: RecordSink) -> None:
        self._sink = sink
        self._index_of: dict[str, int] = {}
        self._new_texts: list[str] = []
        # By name: the hash of a table is computed from all its columns.
        self._collected: dict[str, _Collected] = {}
        self._programs = RANK_PROGRAM

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
        collected = self._collected.get(table.name)
        if collected is None:
            collected = self._collected[table.name] = _Collected(table)
        collected.pieces.append(rows)
        collected.nbytes += len(rows)
        if collected.nbytes >= _KEPT_BYTES:
            self._pass_on_rows(collected)

    def flush(self) -> None:
        """Pass on all that is collected."""
        for collected in self._collected.values():
            self._pass_on_rows(collected)

    def _pass_on_rows(self, collected: "_Collected") -> None:
        table, rows = collected.table, b"".join(collected.pieces)
        collected.pieces.clear()
        collected.nbytes = 0
        most = CHUNK_BYTES // table.row_bytes * table.row_bytes
        for start in range(0, len(rows), most):
            self._pass_on(table, rows[start : start + most])

    def _pass_on(self, table: RunTable, rows: bytes) -> None:
        texts, self._new_texts = tuple(self._new_texts), []
        self._sink(table.name, rows, texts)


class _Collected:
    """Rows of a table that are not passed on yet."""

    def __init__(self, table: RunTable) -> None:
        self.table, self.nbytes = table, 0
        self.pieces: list[bytes] = []
