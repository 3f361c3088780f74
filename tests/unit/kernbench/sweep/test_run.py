"""The figure of a sweep, drawn again from its CSV alone."""

from pathlib import Path

import pytest

from kernbench.cli.main import main
from kernbench.sweep.files import CSV, FIGURE, REQUEST, begin, write_table
from tests.unit.kernbench.sweep.test_files import DESCRIPTION
from tests.unit.kernbench.sweep.test_report import columns

pytestmark = pytest.mark.slow


def drawn(directory: Path, *arguments: str) -> bytes:
    assert main(["sweep", "--from", str(directory), *arguments]) == 0
    return (directory / FIGURE).read_bytes()


def test_a_figure_needs_the_csv_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    begin(tmp_path, DESCRIPTION)
    write_table(tmp_path, columns(4))
    figure = drawn(tmp_path)
    assert capsys.readouterr().out == f"files           {tmp_path / FIGURE}\n"
    (tmp_path / REQUEST).unlink()
    assert drawn(tmp_path) == figure
    assert drawn(tmp_path, "--metric", "algbw_gbs") != figure
    assert sorted(path.name for path in tmp_path.iterdir()) == [CSV, "sweep.parquet", FIGURE]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--metric", "algbw"], "metric 'algbw' is no column of the sweep; did you mean"),
        (["--plot", "heatmap"], "--plot heatmap: it needs 2 swept keys, not 1"),
    ],
)
def test_a_figure_that_does_not_fit_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
):
    write_table(tmp_path, columns(4))
    assert main(["sweep", "--from", str(tmp_path), *arguments]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"kernbench: error: {problem}")
    assert printed.count("\n") == 1


def test_a_directory_without_a_sweep_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["sweep", "--from", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"kernbench: error: {tmp_path / CSV} cannot be read: No such file or directory\n"
    )
