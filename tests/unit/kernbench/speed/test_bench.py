"""The comparison of speed: its rows, from columns whose runs are given."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kernbench.speed.bench import BenchColumn, main, run_rows
from kernbench.speed.measured_run import MeasuredRun


class FixedColumn(BenchColumn):
    """A column whose runs take `procs` seconds."""

    def measure(self, arguments: Sequence[str]) -> MeasuredRun:
        return MeasuredRun(self.procs, 2.0 * self.procs, 50.0, self.title[0])


def test_ratios_are_taken_to_the_first_column() -> None:
    columns = [FixedColumn("a", Path("p"), Path("r"), procs) for procs in (4, 1)]
    assert list(run_rows(["default bench"], columns, 2)) == [
        ("default bench", "a", "4.00", "8.00", "50", "1.00", "1.00"),
        ("default bench", "a", "1.00", "2.00", "50", "4.00", "4.00"),
    ]


def test_digests_of_one_tree_must_be_equal_and_those_of_two_may_differ() -> None:
    trees = [FixedColumn(title, Path("p"), Path(title), 1) for title in ("a", "b")]
    assert len(list(run_rows(["default bench"], trees, 1))) == 2
    one_tree = [FixedColumn(title, Path("p"), Path("r"), 1) for title in ("a", "b")]
    with pytest.raises(SystemExit, match="digests of a differ"):
        list(run_rows(["default bench"], one_tree, 1))


def test_no_rounds_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--rounds", "0"])
    assert "--rounds 0: at least 1" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.multiproc
def test_a_tiny_comparison_runs_to_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--rounds", "1"]) == 0
    assert capsys.readouterr().out.count("| default bench |") == 2
