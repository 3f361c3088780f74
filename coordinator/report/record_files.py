"""Writes the tables of a run as Parquet files, one for each SIP and table.

The rows of a file are in groups of a fixed size, which does not depend on the chunks in which they
came, and texts are dictionaries in the order of their first use in the SIP. So the bytes of a file
are the same for any number of processes.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from coordinator.report.arrow_arrays import arrow_type, number_array, text_array
from coordinator.report.background import Writing
from coordinator.report.record_rows import RecordRows
from coordinator.watch.record_store import StoredTable
from runtime.core.errors import ProtocolError
from runtime.core.output import OutputError
from runtime.core.run_tables import BIN_PS, LINKS, RECORDS, Form, RunColumn, RunTable
from runtime.core.sha256 import sha256_of_file

if TYPE_CHECKING:
    import numpy as np

_GROUP_ROWS = 1 << 17
"""Rows of a row group: about 10 MB before compression."""
_RISING_NUMBERS = ("step", "released_by", "call", "awaits")
"""Columns besides those of times in which a value is near the value of the row before."""
_PARQUET = "pyarrow.parquet"
_PATTERN = "sip*.parquet"


def import_early(modules: Sequence[str]) -> None:
    """Import in a thread what the files are written with, while the processes of a run start.

    Then `modules`, which the caller of the run needs after it.
    """
    # It takes 0.1 s with numpy. Without the package, `write_records` raises.
    if find_spec("pyarrow") is not None:
        Thread(target=_import, args=((_PARQUET, *modules),)).start()


def _import(modules: Sequence[str]) -> None:
    # What cannot be imported is reported where it is used.
    with suppress(Exception):
        for module in modules:
            import_module(module)


def remove_records(directory: Path) -> None:
    """Remove the tables of an earlier run from the directory of a run."""
    for file in (directory / RECORDS).glob(_PATTERN):
        file.unlink()
    # It stays if the user has put another file there.
    with suppress(OSError):
        (directory / RECORDS).rmdir()


def write_records(directory: Path, records: RecordRows, writing: Writing) -> dict[str, str]:
    """Write the tables of a run to its directory; until `writing` is given up.

    Returns the SHA-256 of each file, by its path in the directory. Raises `OutputError`, and
    `ProtocolError` for rows that refer to texts which never came.
    """
    tables = records.tables
    hashes = dict[str, str]()
    if not tables:
        return hashes
    folder = directory / RECORDS
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError((str(folder), error.strerror or str(error))) from error
    for stored in tables:
        path = folder / stored.table.file(stored.sip)
        try:
            _write(path, stored, records, writing)
            hashes[f"{RECORDS}/{path.name}"] = sha256_of_file(path)
        except Exception as error:
            path.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise OutputError((str(path), error.strerror or str(error))) from error
            raise
    return hashes


def _write(path: Path, stored: StoredTable, records: RecordRows, writing: Writing) -> None:
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module(_PARQUET)
    schema = arrow.schema(
        [(column.name, arrow_type(column.form)) for column in stored.table.columns],
        {BIN_PS: str(records.bin_ps)} if stored.table is LINKS else None,
    )
    with parquet.ParquetWriter(path, schema, **_encoding(stored.table)) as writer:
        for arrays in _groups(stored, records):
            writing.check()
            writer.write_batch(arrow.record_batch(arrays, schema=schema))


def _encoding(table: RunTable) -> dict[str, Any]:
    """The encoding of the columns that takes the least time: differences of rising numbers, and
    for all others indices of their values.
    """
    rising = [each.name for each in table.columns if _is_rising(each)]
    return {
        "column_encoding": dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
        "use_dictionary": [each.name for each in table.columns if each.name not in rising],
        # Readers that select by time skip groups of rows by these.
        "write_statistics": rising,
        "compression": "snappy",
    }


def _is_rising(column: RunColumn) -> bool:
    return column.name.endswith("_ps") or column.name in _RISING_NUMBERS


def _groups(stored: StoredTable, records: RecordRows) -> Iterator[list[object]]:
    """The columns of each row group."""
    texts = records.texts(stored.sip)
    for rows in records.parts(stored, _GROUP_ROWS):
        yield [
            _text_column(stored, column.name, rows[column.name], texts)
            if column.form is Form.TEXT
            else number_array(column.form, rows[column.name])
            for column in stored.table.columns
        ]


def _text_column(
    stored: StoredTable,
    column: str,
    indices: "np.ndarray[Any, np.dtype[np.int32]]",
    texts: Sequence[str],
) -> object:
    """A column of texts, with a dictionary of those that it has."""
    import numpy as np

    # The rows come from another process: a wrong index would read outside of the list.
    wrong = indices[(indices < 0) | (indices >= len(texts))]
    if len(wrong):
        raise ProtocolError(
            stored.peer,
            f"column {column} of table {stored.table.name}: text {wrong[0]}, "
            f"SIP {stored.sip} has sent {len(texts)}",
        )
    used = np.zeros(len(texts), bool)
    used[indices] = True
    place = np.cumsum(used, dtype=np.int32) - 1
    return text_array(place[indices], [texts[index] for index in used.nonzero()[0].tolist()])
