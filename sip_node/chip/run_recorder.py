"""Collects the rows of the tables of one SIP, and passes them on in chunks.

The rows of an operation or a step are packed where it ends, and come here in pieces of any number
of rows. Every text is passed on once, before the first row that refers to it.
"""

from collections.abc import Callable

from runtime.core.run_tables import OPS, RunTable
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
