"""The tables of a run as Parquet files, read back with pyarrow."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from coordinator.report.background import Writing
from coordinator.report.record_files import remove_records, write_records
from coordinator.report.record_rows import RecordRows
from coordinator.watch.record_store import RecordStore
from runtime.core.errors import ProtocolError
from runtime.core.output import OutputError
from runtime.core.run_tables import LINKS, OPS, PROGRAMS, TABLES

PEER = "LP 0"


def program(number: int, kernel: int, thread: int, line: int) -> bytes:
    return PROGRAMS.packer.pack(number, 3, -1, kernel, thread, 7, line, 1 << 60, -1)


def records(*chunks: tuple[int, str, bytes, tuple[str, ...]]) -> RecordRows:
    stored = RecordStore()
    for chunk in chunks:
        stored.add(*chunk, PEER)
    return RecordRows(stored)


def test_a_file_has_the_columns_of_its_table_and_its_rows_in_order(tmp_path: Path) -> None:
    texts = ("unused", "kernels", "add", "")
    first, second = program(0, 2, 1, 3), program(5, 3, 1, 2)
    stored = records((1, "programs", first, texts), (1, "programs", second, ()))
    write_records(tmp_path, stored, Writing())
    table = pq.read_table(tmp_path / "records" / "sip1.programs.parquet")
    assert table.column_names == [column.name for column in PROGRAMS.columns]
    rest = (7, "", 1 << 60, -1)
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (0, 3, -1, "add", "kernels", *rest),
        (5, 3, -1, "", "kernels", 7, "add", 1 << 60, -1),
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_is_written_with_its_types(tmp_path: Path, table) -> None:
    row = table.packer.pack(*(0 for _ in table.columns))
    write_records(tmp_path, records((0, table.name, row, ("x",))), Writing())
    schema = pq.read_schema(tmp_path / "records" / table.file(0))
    names = {"<i2": "int16", "<i4": "int32", "<i8": "int64", "|u1": "bool"}
    names["text"] = "dictionary<values=string, indices=int32, ordered=0>"
    assert [str(field.type) for field in schema] == [names[c.form] for c in table.columns]


def test_the_bytes_of_a_file_do_not_depend_on_the_chunks(tmp_path: Path) -> None:
    rows = b"".join(program(number, number % 3, 0, 1) for number in range(140_000))
    half = 1000 * PROGRAMS.row_bytes
    texts = ("a", "b", "c")
    whole = records((0, "programs", rows, texts))
    parts = records(
        (0, "programs", b"", texts[:2]),
        (0, "programs", rows[:half], texts[2:]),
        (0, "programs", rows[half:], ()),
    )
    written = []
    for name, stored in (("whole", whole), ("parts", parts)):
        (tmp_path / name).mkdir()
        write_records(tmp_path / name, stored, Writing())
        written.append((tmp_path / name / "records" / "sip0.programs.parquet").read_bytes())
    assert written[0] == written[1]
    assert pq.ParquetFile(tmp_path / "whole/records/sip0.programs.parquet").num_row_groups == 2


def test_rows_that_are_no_rows_of_a_table_are_refused_with_the_name_of_the_peer() -> None:
    with pytest.raises(ProtocolError, match=r"LP 0.*table 'other', the tables are ops, programs"):
        records((0, "other", b"", ()))
    with pytest.raises(ProtocolError, match=r"LP 0.*41 bytes of table links, a row has 48"):
        records((0, "links", bytes(41), ()))


def test_times_are_stored_as_differences_and_other_columns_as_indices(tmp_path: Path) -> None:
    rows = b"".join(program(number, 1, 0, 1) for number in range(100))
    write_records(tmp_path, records((0, "programs", rows, ("a", "b"))), Writing())
    group = pq.read_metadata(tmp_path / "records" / PROGRAMS.file(0)).row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    assert {column.compression for column in columns} == {"SNAPPY"}
    rising = {each.path_in_schema for each in columns if "DELTA_BINARY_PACKED" in each.encodings}
    assert rising == {"begin_ps", "end_ps"}
    assert {each.path_in_schema for each in columns if not each.has_dictionary_page} == rising
    # Readers skip groups of rows by these limits.
    assert {each.path_in_schema for each in columns if each.statistics} == rising


@pytest.mark.parametrize("index", [-1, 1, 2**31 - 1])
def test_a_text_that_never_came_is_refused(tmp_path: Path, index: int) -> None:
    row = LINKS.packer.pack(index, 0, 0, 0, 0, 0, 0)
    expected = f"LP 0.*column link of table links: text {index}, SIP 4 has sent 1"
    with pytest.raises(ProtocolError, match=expected):
        write_records(tmp_path, records((4, "links", row, ("x",))), Writing())


def test_a_folder_that_cannot_be_written_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file")
    row = bytes(OPS.row_bytes)
    with pytest.raises(OutputError, match=r"cannot write .*records: File exists"):
        write_records(tmp_path, records((0, "ops", row, ("",))), Writing())


def test_the_records_of_an_earlier_run_are_removed_and_no_other_file(tmp_path: Path) -> None:
    write_records(tmp_path, records((0, "ops", bytes(OPS.row_bytes), ("",))), Writing())
    (tmp_path / "records" / "notes.txt").write_text("mine")
    remove_records(tmp_path)
    assert [file.name for file in (tmp_path / "records").iterdir()] == ["notes.txt"]
    remove_records(tmp_path / "none")


def test_a_run_without_records_has_no_folder(tmp_path: Path) -> None:
    write_records(tmp_path, records(), Writing())
    assert list(tmp_path.iterdir()) == []
