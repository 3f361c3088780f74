"""Writes the tables of a run as Parquet files, one for each SIP and table.

The rows of a file are in groups of a fixed size, which does not depend on the chunks in which they
came, and texts are dictionaries in the order of their first use in the SIP. So the bytes of a file
are the same for any number of processes.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from coordinator.record_store import RecordStore, StoredTable
from coordinator.report.link_bins import shift_of, with_bins
from runtime.core.errors import ProtocolError
from runtime.core.output import OutputError
from runtime.core.run_tables import BIN_PS, LEAST_BIN_PS, LINKS, RECORDS, Form, RunTable

if TYPE_CHECKING:
    import numpy as np

    from coordinator.report.link_bins import Rows

_GROUP_ROWS = 1 << 17
"""Rows of a row group: about 10 MB before compression."""
_PARQUET = "pyarrow.parquet"
_PATTERN = "sip*.parquet"
_ARROW_TYPES = {
    Form.INT16: "int16",
    Form.INT32: "int32",
    Form.INT64: "int64",
    Form.FLAG: "bool_",
}


def import_early() -> None:
    """Import in a thread what the files are written with, while the processes of a run simulate."""
    # It takes 0.2 s with numpy. Without the package, `write_records` raises.
    if _PARQUET not in sys.modules and find_spec("pyarrow") is not None:
        Thread(target=import_module, args=(_PARQUET,)).start()


def remove_records(directory: Path) -> None:
    """Remove the tables of an earlier run from the directory of a run."""
    for file in (directory / RECORDS).glob(_PATTERN):
        file.unlink()


def write_records(directory: Path, records: RecordStore) -> None:
    """Write the tables of a run to its directory.

    Raises `OutputError`, and `ProtocolError` for rows that refer to texts which never came.
    """
    tables = records.tables
    if not tables:
        return
    folder = directory / RECORDS
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError((str(folder), error.strerror or str(error))) from error
    shift = shift_of(_rows_of(each) for each in tables if each.table is LINKS)
    for stored in tables:
        path = folder / stored.table.file(stored.sip)
        try:
            _TableFile(stored, records.texts(stored.sip), shift).write(path)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise OutputError((str(path), error.strerror or str(error))) from error


def _rows_of(stored: StoredTable) -> "Rows":
    """All rows of a table."""
    return _rows(b"".join(stored.parts(_GROUP_ROWS)), stored.table)


def _rows(packed: bytes, table: RunTable) -> "Rows":
    import numpy as np

    return np.frombuffer(
        packed, np.dtype([(each.name, str(each.packed)) for each in table.columns])
    )


class _TableFile:
    """A table of a SIP as Arrow's batches, one for each row group.

    Bins of links have the width `LEAST_BIN_PS << shift`.
    """

    def __init__(self, stored: StoredTable, texts: Sequence[str], shift: int) -> None:
        self._stored, self._texts, self._shift = stored, texts, shift
        # Imported here: a command that records nothing does without its 20 MB, and so does every
        # LP. It has no types.
        self._arrow: Any = import_module("pyarrow")
        self._schema = self._arrow.schema(
            [(column.name, self._type(column.form)) for column in stored.table.columns],
            {BIN_PS: str(LEAST_BIN_PS << shift)} if stored.table is LINKS else None,
        )

    def _type(self, form: Form) -> object:
        arrow = self._arrow
        if form is Form.TEXT:
            return arrow.dictionary(arrow.int32(), arrow.string())
        return getattr(arrow, _ARROW_TYPES[form])()

    def write(self, path: Path) -> None:
        parquet: Any = import_module(_PARQUET)
        with parquet.ParquetWriter(path, self._schema, compression="zstd") as writer:
            for batch in self._batches():
                writer.write_batch(batch)

    def _batches(self) -> Iterator[object]:
        columns = self._stored.table.columns
        for rows in self._parts():
            arrays = [
                self._dictionary(column.name, rows[column.name])
                if column.form is Form.TEXT
                else self._arrow.array(rows[column.name]).cast(self._type(column.form))
                for column in columns
            ]
            yield self._arrow.record_batch(arrays, schema=self._schema)

    def _parts(self) -> "Iterator[Rows]":
        stored = self._stored
        if stored.table is not LINKS:
            yield from (_rows(part, stored.table) for part in stored.parts(_GROUP_ROWS))
            return
        rows = with_bins(_rows_of(stored), self._shift)
        for start in range(0, len(rows), _GROUP_ROWS):
            yield rows[start : start + _GROUP_ROWS]

    def _dictionary(self, column: str, indices: "np.ndarray[Any, np.dtype[np.int32]]") -> object:
        """A column of texts, with a dictionary of those that it has."""
        import numpy as np

        arrow, texts = self._arrow, self._texts
        wrong = indices[(indices < 0) | (indices >= len(texts))]
        if len(wrong):
            raise ProtocolError(
                self._stored.peer,
                f"column {column} of table {self._stored.table.name}: text {wrong[0]}, "
                f"SIP {self._stored.sip} has sent {len(texts)}",
            )
        used = np.zeros(len(texts), bool)
        used[indices] = True
        place = np.cumsum(used, dtype=np.int32) - 1
        dictionary = arrow.array(
            [texts[index] for index in used.nonzero()[0].tolist()], arrow.string()
        )
        return arrow.DictionaryArray.from_arrays(arrow.array(place[indices]), dictionary)
