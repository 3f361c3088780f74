"""`probe` and `validate` from the command line of a checkout, in another directory."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.runs import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


def launch(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "launch.py"), *words]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=where, timeout=110, check=False
    )


def test_probe_agrees_with_its_closed_forms_and_writes_its_files(tmp_path: Path) -> None:
    done = launch(tmp_path, "probe", "--sips", "4", "--csv", "probe.csv", "--json", "probe.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("26 transfers: measured = closed form, to the picosecond\n")
    with (tmp_path / "probe.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 26
    assert all(row["agrees"] == "True" for row in rows)
    assert (tmp_path / "probe.json").stat().st_size > 0


def test_probe_sweeps_every_case(tmp_path: Path) -> None:
    done = launch(tmp_path, "probe", "--sweep")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("216 transfers: measured = closed form, to the picosecond\n")


def test_probe_fails_where_a_component_is_slower_than_in_the_file(tmp_path: Path) -> None:
    swapped = "impl: {hbm_ctrl: examples.slow_hbm:SlowHbm}\n"
    (tmp_path / "slow.yaml").write_text((ROOT / "topology.yaml").read_text() + swapped)
    done = launch(tmp_path, "probe", "--topology", "slow.yaml", "--case", "dma-own")
    assert (done.returncode, done.stderr) == (1, "")
    assert "2 of 2 transfers differ from their closed form" in done.stdout


def test_probe_refuses_an_unknown_case_in_one_line(tmp_path: Path) -> None:
    done = launch(tmp_path, "probe", "--case", "dma-onw")
    assert done.returncode not in (0, 1)
    assert done.stdout == ""
    assert (
        done.stderr
        == "kernbench: error: probe: --case: unknown case 'dma-onw'; did you mean 'dma-own'?\n"
    )


def test_the_sensitivity_tables_of_the_page_are_what_the_program_prints() -> None:
    command = [sys.executable, "-m", "tests.fidelity.tables.sensitivity"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=110, check=True
    )
    page, tables = ROOT / "docs" / "internals" / "sensitivity.md", done.stdout.split("\n\n")
    shown = [line for line in page.read_text().splitlines() if line.startswith("|")]
    assert len(tables) == 3
    # The page has some of the rows; each is printed, and no table is left out.
    assert set(shown) <= set(done.stdout.splitlines())
    assert all(len(set(table.splitlines()) & set(shown)) > 3 for table in tables)


@pytest.mark.parametrize("group", ["f", "n"])
def test_validate_finds_nothing_wrong_with_the_model(group: str, tmp_path: Path) -> None:
    # tests/fidelity/ runs the other groups, most of them on wrong models as well.
    done = launch(tmp_path, "validate", "--only", f"{group}.")
    assert done.returncode == 0
    # The progress of its parts.
    assert re.fullmatch(rf"(\d/\d  {group}\..*  \d+ checks?(  about .* left)?\n)+", done.stderr)
