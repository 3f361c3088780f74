"""Stores the tables of all SIPs as they arrive: texts in memory, packed rows on disk.

A large run has hundreds of megabytes of rows, which nothing reads before its end.
"""

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from weakref import finalize

from runtime.core.errors import ProtocolError
from runtime.core.run_tables import TABLES, RunTable

_IN_MEMORY_BYTES = 8 << 20
"""The rows of a table of a SIP that stay in memory."""
_TABLES = {table.name: table for table in TABLES}


class StoredTable:
    """The rows of a table of one SIP, in their order."""

    def __init__(self, sip: int, table: RunTable, peer: str) -> None:
        self.sip, self.table, self.peer = sip, table, peer
        self._rows = SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - closed below
        # The result of a run has no end of its own at which it could be closed.
        finalize(self, self._rows.close)

    def append(self, rows: bytes) -> None:
        """Append packed rows."""
        self._rows.write(rows)

    def parts(self, most_rows: int) -> Iterator[bytes]:
        """All rows, in parts of `most_rows` and one for the rest."""
        self._rows.seek(0)
        while part := self._rows.read(most_rows * self.table.row_bytes):
            yield part


class RecordStore:
    """The tables of a run, by SIP, and the texts of each SIP."""

    def __init__(self) -> None:
        self._stored: dict[tuple[int, RunTable], StoredTable] = {}
        self._texts: dict[int, list[str]] = {}

    def add(self, sip: int, table: str, rows: bytes, texts: tuple[str, ...], peer: str) -> None:
        """Append the next rows and texts of a SIP. Raises `ProtocolError` naming `peer`."""
        known = _TABLES.get(table)
        if known is None:
            raise ProtocolError(
                peer, f"rows of table {table!r}, the tables are {', '.join(_TABLES)}"
            )
        if len(rows) % known.row_bytes:
            raise ProtocolError(
                peer,
                f"{len(rows)} bytes of table {table}, a row has {known.row_bytes}",
            )
        self._texts.setdefault(sip, []).extend(texts)
        stored = self._stored.get((sip, known))
        if stored is None:
            stored = self._stored[sip, known] = StoredTable(sip, known, peer)
        stored.append(rows)

    def texts(self, sip: int) -> list[str]:
        """The texts of a SIP."""
        return self._texts.get(sip, [])

    @property
    def tables(self) -> list[StoredTable]:
        """The tables of all SIPs that have sent any, by SIP, in the order of `TABLES`."""
        return [
            self._stored[sip, table]
            for sip in sorted(self._texts)
            for table in TABLES
            if (sip, table) in self._stored
        ]
