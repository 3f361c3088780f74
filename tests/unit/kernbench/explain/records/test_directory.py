"""The directory of a run: its tables, and every error of a directory which is none."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kernbench.explain.records import RecordedRun, open_run
from runtime.core.errors import UsageError
from runtime.core.run_tables import LINKS, OPS, STEPS
from tests.support.run_tables import op, sign, step, tables, write_run


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    ops = [op("pe_dma", "load", 5, 9, pe=1, cube=2), op("pe_math", "add", 9, 12, pe=1, cube=2)]
    links = [{"link": "a", "kind": "link", "bin": 0, "nbytes": 7}]
    sip = tables(ops, steps=[step(0, "load", 0, 9)], links=links)
    return write_run(tmp_path / "run", [sip, tables()], total_ps=12_345)


def problem(directory: Path) -> str:
    """The error of opening the directory and reading all of its tables."""
    with pytest.raises(UsageError) as caught:
        read_all(open_run(directory))
    return str(caught.value)


def read_all(records: RecordedRun) -> None:
    for table in (OPS, STEPS, LINKS):
        records.tables(table)


def test_columns_are_those_of_the_file(directory: Path):
    records = open_run(directory)
    ops = records.table(OPS, 0)
    assert (len(ops), list(ops["start_ps"]), ops["cube"].dtype.str) == (2, [5, 9], "<i2")
    assert [ops.text("engine")[row] for row in range(2)] == ["pe_dma", "pe_math"]
    assert list(ops.text("engine").equal("pe_math")) == [False, True]
    assert (records.run.total_ps, records.bin_ps) == (12_345, 1024)
    assert records.topology.sips == 2


def test_a_sip_without_rows_has_empty_columns(directory: Path):
    ops = open_run(directory).table(OPS, 1)
    assert (len(ops), list(ops["start_ps"]), len(ops.text("name"))) == (0, [], 0)


def remove(directory: Path, *names: str) -> None:
    for name in names:
        (directory / "records" / f"sip0.{name}.parquet").unlink()


def test_a_table_that_the_run_has_not_written_has_no_rows(directory: Path):
    remove(directory, "links", "ops", "commands", "steps")
    sign(directory)
    records = open_run(directory)
    assert (len(records.table(STEPS, 0)), records.bin_ps) == (0, 1024)


@pytest.mark.parametrize(
    ("removed", "missing"),
    [
        (["ops"], "no records/sip0.ops.parquet; copy the whole directory"),
        (["links", "programs"], "no records/sip0.links.parquet and 1 others"),
    ],
)
def test_a_run_has_the_tables_that_it_has_written(
    directory: Path, removed: list[str], missing: str
):
    remove(directory, *removed)
    assert missing in problem(directory)


def test_a_table_of_another_run_in_the_directory_is_not_read(directory: Path):
    remove(directory, "ops")
    sign(directory)
    (directory / "records" / "sip0.ops.parquet").write_bytes(b"of another run")
    assert len(open_run(directory).table(OPS, 0)) == 0


def test_texts_of_several_row_groups_have_one_list(directory: Path):
    path = directory / "records" / "sip0.ops.parquet"
    table = parquet.read_table(path)
    with parquet.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table.slice(0, 1))
        writer.write_table(table.slice(1, 1))
    sign(directory)
    engines = open_run(directory).table(OPS, 0).text("engine")
    assert [engines[row] for row in range(2)] == ["pe_dma", "pe_math"]


def test_a_directory_that_does_not_exist(tmp_path: Path):
    assert "no such directory" in problem(tmp_path / "absent")


def test_a_file_is_not_a_run(directory: Path):
    assert "is a file: give the directory of a run" in problem(directory / "run.json")


def test_a_directory_without_report(directory: Path):
    (directory / "run.json").unlink()
    assert "has no run.json: it is not the directory of a run" in problem(directory)


@pytest.mark.parametrize("text", ["{", "[]", '{"bench": 1}'])
def test_a_report_of_another_program(directory: Path, text: str):
    (directory / "run.json").write_text(text)
    assert "is not the report of a run of this version of kernbench" in problem(directory)


def test_a_run_without_trace(directory: Path):
    (directory / "records").rename(directory / "elsewhere")
    assert "run it again without --no-trace" in problem(directory)


def test_a_run_without_its_topology(directory: Path):
    (directory / "topology.yaml").unlink()
    assert "is incomplete: it has no topology.yaml" in problem(directory)


@pytest.mark.parametrize("name", ["topology.yaml", "records/sip0.ops.parquet"])
def test_a_file_with_one_changed_bit_is_damaged(directory: Path, name: str):
    content = bytearray((directory / name).read_bytes())
    content[len(content) // 2] ^= 1
    (directory / name).write_bytes(content)
    assert f"{name} is damaged: its SHA-256 is not that of run.json" in problem(directory)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a table" * 9])
def test_a_corrupt_table(directory: Path, content: bytes):
    (directory / "records" / "sip0.steps.parquet").write_bytes(content)
    assert "sip0.steps.parquet is damaged" in problem(directory)
    sign(directory)
    assert "sip0.steps.parquet is not a table of a run" in problem(directory)


def test_a_table_of_another_version(directory: Path):
    path = directory / "records" / "sip0.ops.parquet"
    table = parquet.read_table(path)
    parquet.write_table(table.drop_columns(["cause"]), path)
    sign(directory)
    assert "is of another version of kernbench: no column 'cause'" in problem(directory)
    texts = pa.array(["x"] * len(table))
    changed = table.set_column(table.schema.get_field_index("start_ps"), "start_ps", texts)
    parquet.write_table(changed, path)
    sign(directory)
    assert "the column 'start_ps' is string, not <i8" in problem(directory)


def test_links_without_the_width_of_their_bins(directory: Path):
    path = directory / "records" / "sip1.links.parquet"
    parquet.write_table(parquet.read_table(path).replace_schema_metadata({}), path)
    sign(directory)
    assert "has no width of its time bins (bin_ps)" in problem(directory)
