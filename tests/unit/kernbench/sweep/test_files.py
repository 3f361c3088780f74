"""The directory of a sweep: its lock, its description, and its table in two formats."""

import csv
from pathlib import Path

import msgspec
import pytest
from pyarrow import parquet

from kernbench.sweep.files import (
    CSV,
    FIGURE,
    PARQUET,
    REQUEST,
    SweepDescription,
    begin,
    read_description,
    require_same_sweep,
    sweep_directory,
    write_table,
)
from kernbench.sweep.parameters import Parameter, ParameterKind
from runtime.core.errors import UsageError

DESCRIPTION = SweepDescription(
    program="ccl-allreduce",
    arguments=("fast",),
    swept=(
        Parameter("w", ParameterKind.TOPOLOGY, "system.sips.w", (None, 2)),
        Parameter("--x", ParameterKind.ARGUMENT, "--x", (1, 2.5, "a", True)),
    ),
    fixed=(),
    zip=False,
    topology="topology.yaml",
    ccl="ccl.yaml",
    data=True,
    metric="time_ns",
    plot="auto",
    configuration="0" * 64,
)


def test_sweeps_have_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        with sweep_directory(None, "matmul") as directory:
            assert directory == Path(f"sweeps/000{number}-matmul")
            assert directory.is_dir()


def test_two_sweeps_do_not_write_to_one_directory(tmp_path: Path):
    with sweep_directory(tmp_path / "out", "x") as directory:
        with pytest.raises(UsageError) as refused, sweep_directory(directory, "x"):
            pass
        assert "\n" not in str(refused.value)
        assert str(refused.value).startswith(f"--out: {directory} is in use")
    with sweep_directory(directory, "x"):
        pass


def test_the_directory_of_another_sweep_is_refused(tmp_path: Path):
    require_same_sweep(tmp_path, DESCRIPTION)
    begin(tmp_path, DESCRIPTION)
    shown = msgspec.structs.replace(DESCRIPTION, metric="x_gbs", plot="pareto")
    require_same_sweep(tmp_path, shown)
    other = msgspec.structs.replace(DESCRIPTION, swept=DESCRIPTION.swept[:1])
    with pytest.raises(UsageError, match=r"^--out: .* has another sweep, of ccl-allreduce: --res"):
        require_same_sweep(tmp_path, other)


def test_a_directory_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(UsageError, match="--out: cannot write to"),
        sweep_directory(tmp_path / "file", "x"),
    ):
        pass


def test_the_description_is_read_as_it_was_written(tmp_path: Path):
    assert read_description(tmp_path) is None
    begin(tmp_path, DESCRIPTION)
    assert read_description(tmp_path) == DESCRIPTION


def test_a_file_that_is_no_description_is_refused_in_one_line(tmp_path: Path):
    (tmp_path / REQUEST).write_text('{"version": 1}')
    with pytest.raises(UsageError, match=r"sweep\.json: .*missing") as refused:
        read_description(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_new_sweep_removes_the_table_and_the_figure_of_an_earlier_one(tmp_path: Path):
    for name in (CSV, PARQUET, FIGURE, "mine.txt"):
        (tmp_path / name).touch()
    begin(tmp_path, DESCRIPTION)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt", REQUEST]


def test_both_tables_have_the_same_cells(tmp_path: Path):
    columns = {
        "key": [1, 2],
        "w": [None, 2],
        "fast": [True, False],
        "time_ns": [31232.638, None],
        "rate": [0.19386346408262825, 1e-7],
        "fault": [None, 'it has "quotes", and a comma'],
    }
    assert write_table(tmp_path, columns) == [tmp_path / CSV, tmp_path / PARQUET]
    assert parquet.read_table(tmp_path / PARQUET).to_pydict() == columns
    with (tmp_path / CSV).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows == [
        {
            "key": "1",
            "w": "",
            "fast": "true",
            "time_ns": "31232.638",
            "rate": "0.19386346408262825",
            "fault": "",
        },
        {
            "key": "2",
            "w": "2",
            "fast": "false",
            "time_ns": "",
            "rate": "1e-07",
            "fault": 'it has "quotes", and a comma',
        },
    ]
    # Also without a fault.
    write_table(tmp_path, columns | {"fault": [None, None]})
    assert str(parquet.read_schema(tmp_path / PARQUET).field("fault").type) == "string"
    assert b"\r" not in (tmp_path / CSV).read_bytes()
