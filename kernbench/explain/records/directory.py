"""Opens the directory of a run. An error for what it lacks names the remedy."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from stat import S_ISREG
from typing import Any

import msgspec

from kernbench.explain.records.columns import Columns, Texts
from kernbench.explain.records.records import RecordedRun, RunSummary
from runtime.core.errors import UsageError
from runtime.core.run_tables import (
    BIN_PS,
    LINKS,
    RECORDS,
    Form,
    RunTable,
)
from runtime.core.sha256 import sha256_hex

RUN, TOPOLOGY, CCL = "run.json", "topology.yaml", "ccl.yaml"
_AGAIN = "run it again with this version"


def open_run(directory: Path) -> RecordedRun:
    """The records of the run in `directory`; its tables are read when they are used.

    Raises `UsageError` for a directory that is not that of a recorded run.
    """
    run = read_report(directory)
    if not (directory / RECORDS).is_dir():
        raise UsageError(
            f"{directory} has no records: the run was made with --no-trace, or by a version of "
            f"kernbench which had none ({run.versions.get('kernbench', 'unknown')}); run it again "
            "without --no-trace"
        )
    _check_complete(directory, run.files)
    return RecordedRun(
        sips=range(run.sips),
        total_ps=run.total_ps,
        name=str(directory),
        run=run,
        topology_text=_text(directory, run.files, TOPOLOGY),
        ccl_text=_text(directory, run.files, CCL),
        read=lambda table, sip: _read_table(directory, run.files, table, sip),
        directory=directory,
    )


def read_report(directory: Path) -> RunSummary:
    """The report of the run in `directory`, which may have no records.

    Raises `UsageError` for what is not the directory of a run that has ended.
    """
    if not directory.exists():
        raise UsageError(f"no such directory: {directory}; a run prints its own as its last line")
    if not directory.is_dir():
        raise UsageError(f"{directory} is a file: give the directory of a run")
    try:
        text = _bytes_of(directory / RUN)
    except FileNotFoundError as error:
        raise UsageError(
            f"{directory} has no {RUN}: it is not the directory of a run, or that of a run "
            "that was killed before its end"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {directory / RUN}: {error.strerror}") from error
    try:
        return msgspec.json.decode(text, type=RunSummary)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(
            f"{directory / RUN} is not the report of a run of this version of kernbench: "
            f"{error}; {_AGAIN}"
        ) from error


def require_regular(path: Path) -> None:
    """Raise `UsageError` for what is no regular file, and `OSError` for what does not exist."""
    # A FIFO would wait for a writer, and a device may have no end.
    if not S_ISREG(path.stat().st_mode):
        raise UsageError(f"cannot read {path}: it is no regular file")


def _check_complete(directory: Path, files: Mapping[str, str]) -> None:
    """Raise `UsageError` for files that the run has written and the directory has not."""
    missing = [name for name in files if not (directory / name).is_file()]
    if missing:
        raise UsageError(
            f"{directory} is incomplete: it has no {missing[0]}"
            f"{f' and {len(missing) - 1} others' if len(missing) > 1 else ''}; copy the whole "
            "directory, or run it again"
        )


def _content(directory: Path, files: Mapping[str, str], name: str) -> bytes:
    """A file of the run. Raises `UsageError` if it is not as the run has written it."""
    path = directory / name
    try:
        content = _bytes_of(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if name not in files:
        raise UsageError(f"{directory / RUN} has no checksum of {name}; {_AGAIN}")
    if sha256_hex(content) != files[name]:
        raise UsageError(
            f"{path} is damaged: its SHA-256 is not that of {RUN}; copy the directory again, or "
            "run it again"
        )
    return content


def _bytes_of(path: Path) -> bytes:
    """All of a file. Raises `OSError`, or `UsageError` for what has no end or fits no memory."""
    require_regular(path)
    try:
        return path.read_bytes()
    except (MemoryError, OverflowError) as error:
        size = path.stat().st_size
        raise UsageError(f"cannot read {path}: its {size:,} B do not fit into memory") from error


def _text(directory: Path, files: Mapping[str, str], name: str) -> str:
    try:
        return _content(directory, files, name).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {directory / name}: {error}") from error


def _read_table(directory: Path, files: Mapping[str, str], table: RunTable, sip: int) -> Columns:
    # Imported here: what does not read a file does not load the library.
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    name = f"{RECORDS}/{table.file(sip)}"
    if name not in files:
        # Of a table without rows there is no file.
        return Columns.empty(table)
    path, content = directory / name, _content(directory, files, name)
    try:
        # `read_table` imports pandas, where it is installed, which takes half a second.
        with parquet.ParquetFile(arrow.BufferReader(content)) as file:
            read: Any = file.read(use_threads=False)
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{path} is not a table of a run: {reason}; run it again") from error
    missing = [each.name for each in table.columns if each.name not in read.column_names]
    if missing:
        raise UsageError(
            f"{path} is of another version of kernbench: no column {missing[0]!r}; {_AGAIN}"
        )
    return _columns(path, table, read.unify_dictionaries().combine_chunks())


def _columns(path: Path, table: RunTable, read: Any) -> Columns:
    numbers, texts = dict[str, Any](), dict[str, Texts]()
    for column in table.columns:
        values = read.column(column.name)
        try:
            if column.form is Form.TEXT:
                texts[column.name] = _text_column(values)
            else:
                numbers[column.name] = values.to_numpy().astype(str(column.form), copy=False)
        except (ValueError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{path} is of another version of kernbench: the column {column.name!r} is "
                f"{read.schema.field(column.name).type}, not {column.form}; {_AGAIN}"
            ) from error
    metadata = _metadata(read.schema.metadata)
    if table is LINKS and not metadata.get(BIN_PS, "").isdecimal():
        raise UsageError(f"{path} has no width of its time bins ({BIN_PS}): run it again")
    return Columns(table, numbers, texts, metadata)


def _text_column(values: Any) -> Texts:
    chunk = values.combine_chunks()
    if hasattr(chunk, "chunk"):
        # A table without rows has no chunks, and keeps the type of one.
        chunk = chunk.chunk(0) if chunk.num_chunks else chunk.type.wrap_array([])
    return Texts(
        chunk.indices.to_numpy(zero_copy_only=False).astype("<i4"),
        tuple(chunk.dictionary.to_pylist()),
    )


def _metadata(given: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode(): value.decode()
        for key, value in (given or {}).items()
        if not key.startswith(b"ARROW")
    }
