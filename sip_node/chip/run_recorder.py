"""Collects the rows of the tables of one SIP, and passes them on in chunks.

The rows of an operation or a step are packed where it ends, and come here in pieces of any number
of rows. Every text is passed on once, before the first row that refers to it.
"""

from collections.abc import Callable
from types import CodeType, FrameType

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
        self._rows: dict[RunTable, bytearray] = {}
        self._programs, self._steps = RANK_PROGRAM, 0
        # By the id of a code object, which is kept so that no other has it: the hash of a code
        # object is computed from all that it contains.
        self._language: dict[int, tuple[CodeType, bool]] = {}
        self._lines: dict[tuple[int, int], int] = {}

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

    def new_step(self) -> int:
        """The number of the next step that begins."""
        self._steps += 1
        return self._steps - 1

    def kernel_line(self, frame: FrameType | None) -> int:
        """The text of the innermost line of a kernel, searched from `frame` outwards."""
        known = self._language
        while frame is not None:
            code = frame.f_code
            found = known.get(id(code))
            if found is None:
                found = known[id(code)] = code, is_language(frame)
            if not found[1]:
                # By instruction, since the line of one is searched in a table.
                at = id(code), frame.f_lasti
                line = self._lines.get(at)
                if line is None:
                    line = self._lines[at] = self.text(location(frame))
                return line
            frame = frame.f_back
        return self.text(UNKNOWN_LINE)

    def add(self, table: RunTable, rows: bytes) -> None:
        """Append consecutive packed rows to a table."""
        collected = self._rows.get(table)
        if collected is None:
            collected = self._rows[table] = bytearray()
        collected += rows
        if len(collected) >= _KEPT_BYTES:
            self._pass_on_rows(table)

    def flush(self) -> None:
        """Pass on all that is collected."""
        for table in self._rows:
            self._pass_on_rows(table)

    def _pass_on_rows(self, table: RunTable) -> None:
        rows, self._rows[table] = bytes(self._rows[table]), bytearray()
        most = CHUNK_BYTES // table.row_bytes * table.row_bytes
        for start in range(0, len(rows), most):
            self._pass_on(table, rows[start : start + most])

    def _pass_on(self, table: RunTable, rows: bytes) -> None:
        texts, self._new_texts = tuple(self._new_texts), []
        self._sink(table.name, rows, texts)
