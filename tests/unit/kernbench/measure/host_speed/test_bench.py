"""The comparison of speed: its rows, from columns whose runs are given."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kernbench.measure.host_speed.bench import (
    RATIOS,
    RUNS,
    BenchColumn,
    BenchRun,
    main,
    ratio_rows,
    run_rows,
)
from kernbench.measure.host_speed.measured_run import MeasuredRun

TWO_SIPS = "default bench, 2 SIPs"


class FixedColumn(BenchColumn):
    """A column whose commands take as many seconds as its title has letters, runs half of them."""

    def measure(self, run: BenchRun) -> MeasuredRun:
        wall_s = float(len(self.title))
        return MeasuredRun(
            wall_s=wall_s, run_s=wall_s / 2, cpu_s=2 * wall_s, peak_mib=50.0, digest=self.root.name
        )


class Jittered(FixedColumn):
    """A column with a digest of its own."""

    def measure(self, run: BenchRun) -> MeasuredRun:
        return replace(super().measure(run), digest=self.title)


def column(title: str, root: str, procs: int = 1) -> FixedColumn:
    return FixedColumn(title, Path("python"), Path(root), procs)


def test_ratios_are_taken_to_the_first_column_and_to_one_process() -> None:
    columns = [column("before--", "base"), column("now-", "r"), column("2", "r", 2)]
    assert list(run_rows([TWO_SIPS], columns, 2)) == [
        (TWO_SIPS, "before--", "8.00", "4.00", "16.00", "50", "1.00", "1.00", "1.00", "1.00"),
        (TWO_SIPS, "now-", "4.00", "2.00", "8.00", "50", "2.00", "2.00", "2.00", "1.00"),
        (TWO_SIPS, "2", "1.00", "0.50", "2.00", "50", "8.00", "8.00", "8.00", "4.00"),
    ]


def test_a_run_on_one_sip_has_no_row_of_two_processes() -> None:
    columns = [column("1", "r"), column("2", "r", 2)]
    one_sip = [name for name, run in RUNS.items() if run.sips == 1]
    assert [cells[:2] for cells in run_rows(one_sip, columns, 1)] == [(n, "1") for n in one_sip]


def test_digests_of_one_tree_must_be_equal_and_those_of_two_may_differ() -> None:
    assert len(list(run_rows([TWO_SIPS], [column("a", "a"), column("b", "b")], 1))) == 2
    one_tree = [column("a", "r"), Jittered("b", Path("python"), Path("r"), 2)]
    with pytest.raises(SystemExit, match="digests of a differ"):
        list(run_rows([TWO_SIPS], one_tree, 1))


def test_without_simulus_its_rows_are_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simulus", None)
    names = [name for name in RATIOS if "simulus" in name]
    notes = [cell for _, cell in ratio_rows(names, 1)]
    assert len(notes) == 2
    assert all(note.startswith("not measured: simulus is not installed") for note in notes)


def test_no_rounds_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--rounds", "0"])
    assert "--rounds 0: at least 1" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.multiproc
def test_a_tiny_comparison_runs_to_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--rounds", "1"]) == 0
    assert capsys.readouterr().out.count(f"| {TWO_SIPS} |") == 2
