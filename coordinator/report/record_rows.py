"""The rows of the tables of a run as arrays, with one width of the time bins for all SIPs."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from coordinator.report.link_bins import shift_of, with_bins
from coordinator.watch.record_store import RecordStore, StoredTable
from runtime.core.run_tables import LEAST_BIN_PS, LINKS, RunTable

if TYPE_CHECKING:
    import numpy as np

    Rows = np.ndarray[Any, np.dtype[Any]]

_PART_ROWS = 1 << 17


class RecordRows:
    """The rows of `records`, to which nothing is added any more."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._links: dict[int, Rows] = {}

    @property
    def tables(self) -> list[StoredTable]:
        """The tables of all SIPs that have sent any."""
        return self._records.tables

    def texts(self, sip: int) -> Sequence[str]:
        """The texts of a SIP, to which rows refer by their index."""
        return self._records.texts(sip)

    @property
    def bin_ps(self) -> int:
        """The width of the time bins of links."""
        return LEAST_BIN_PS << self._shift

    def rows(self, table: RunTable, sip: int) -> "Rows":
        """All rows of a table of a SIP, none for one that has sent none."""
        stored = [each for each in self.tables if each.table is table and each.sip == sip]
        return self._all(stored[0]) if stored else _array(b"", table)

    def parts(self, stored: StoredTable, most_rows: int) -> "Iterator[Rows]":
        """The rows of a table in parts of `most_rows` and one for the rest."""
        if stored.table is not LINKS:
            yield from (_array(part, stored.table) for part in stored.parts(most_rows))
            return
        rows = self._all(stored)
        for start in range(0, len(rows), most_rows):
            yield rows[start : start + most_rows]

    def _all(self, stored: StoredTable) -> "Rows":
        if stored.table is not LINKS:
            return _sent(stored)
        rows = self._links.get(stored.sip)
        if rows is None:
            rows = self._links[stored.sip] = with_bins(_sent(stored), self._shift)
        return rows

    @cached_property
    def _shift(self) -> int:
        return shift_of(_sent(each) for each in self.tables if each.table is LINKS)


def _sent(stored: StoredTable) -> "Rows":
    return _array(b"".join(stored.parts(_PART_ROWS)), stored.table)


def _array(packed: bytes, table: RunTable) -> "Rows":
    # Imported here: a command that records nothing does without its 20 MB.
    import numpy as np

    return np.frombuffer(
        packed, np.dtype([(each.name, str(each.packed)) for each in table.columns])
    )
