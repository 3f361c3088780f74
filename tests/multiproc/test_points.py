"""Point processes: what one point does to itself harms no other one, and nothing is left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernbench.points.driver import PointOptions, measured_points
from kernbench.points.rows_file import RowsFile
from kernbench.points.task import Limits, PointFault
from runtime.core.errors import RunAborted, UsageError
from runtime.core.wallclock import sleep_s
from tests.support.points import (
    NumberPoint,
    NumberRow,
    deadly,
    hungry,
    measurement,
    raising,
    slow,
    squared,
    squared_after_two_deaths,
    squared_with_a_word,
)
from tests.support.runs import ROOT
from tests.support.sessions import wait_until_gone

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

TWO = PointOptions(procs=2)
POINTS = [NumberPoint(number, cost=number) for number in range(1, 7)]
ROWS = {point: squared(point) for point in POINTS}


def _children() -> list[str]:
    listed = subprocess.run(
        ["ps", "-o", "args=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in listed.stdout.splitlines() if "kernbench.points.child" in line]


@pytest.fixture(autouse=True)
def _no_child_is_left():
    yield
    assert _children() == []


def _with_fault(reason: str) -> dict[NumberPoint, NumberRow | PointFault]:
    return ROWS | {POINTS[2]: PointFault("number 3", reason)}


def test_every_point_has_its_row_in_any_order_of_completion():
    assert measured_points(measurement(), POINTS, TWO) == ROWS


def test_a_worker_that_dies_twice_costs_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    points = [NumberPoint(number, str(tmp_path)) for number in range(1, 7)]
    found = measured_points(measurement(squared_after_two_deaths), points, TWO)
    assert found == {point: squared(point) for point in points}
    text = "number 3: its worker has died (killed by SIGKILL); once more\n"
    assert capfd.readouterr().err.count(text) == 2


def test_the_third_death_is_a_fault_and_all_other_rows_are_there():
    found = measured_points(measurement(deadly), POINTS, TWO)
    assert found == _with_fault("its worker has died 3 times (killed by SIGSEGV)")


def test_an_exception_is_a_fault_and_its_traceback_is_shown(capfd: pytest.CaptureFixture[str]):
    found = measured_points(measurement(raising), POINTS, TWO)
    assert found == _with_fault("ValueError: three is too many")
    assert 'number 3:     raise ValueError("three is too many")' in capfd.readouterr().err


def test_too_much_memory_is_a_fault():
    options = PointOptions(procs=2, limits=Limits(memory_bytes=512 << 20))
    found = measured_points(measurement(hungry), POINTS, options)
    assert found == _with_fault("out of memory: it needs more than 512 MiB (--point-memory)")


def test_too_much_time_is_a_fault():
    options = PointOptions(procs=2, limits=Limits(seconds=2))
    found = measured_points(measurement(slow), POINTS, options)
    assert found == _with_fault("it takes more than 2 s (--point-timeout)")


def test_what_points_print_is_shown_with_their_names(capfd: pytest.CaptureFixture[str]):
    measured_points(measurement(squared_with_a_word), POINTS, TWO)
    lines = capfd.readouterr().err.splitlines()
    assert {f"number {number}: a word of {number}" for number in range(1, 7)} <= set(lines)


def test_points_that_do_not_complete_in_time_are_named_and_stopped():
    with pytest.raises(RunAborted, match=r"no result for 2 s \(--timeout\); not done: number 3"):
        measured_points(measurement(slow), POINTS, PointOptions(procs=2, timeout_s=2))


def test_workers_with_other_code_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kernbench.points.code.own_code", lambda: "f" * 64)
    with pytest.raises(
        UsageError, match=r"--on local: worker .*: its kernbench in .* ffffffffffff"
    ):
        measured_points(measurement(), POINTS, TWO)


def test_a_driver_that_is_killed_leaves_its_rows_and_no_process(tmp_path: Path):
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from kernbench.points.driver import PointOptions, measured_points\n"
        "from kernbench.points.rows_file import RowsFile\n"
        "from tests.support.points import *\n"
        "points = [NumberPoint(number, sys.argv[1]) for number in range(3)]\n"
        "path = Path(sys.argv[1], 'rows.jsonl')\n"
        "with RowsFile(path, NumberRow, points, 'c') as rows:\n"
        "    how = measurement(naming_its_process)\n"
        "    measured_points(how, points, PointOptions(procs=3), rows)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stderr is not None
        assert driver.stderr.readline().startswith("1/3  number 0  square 0")
        names = [tmp_path / f"{number}.pid" for number in range(3)]
        while not all(name.exists() for name in names):
            sleep_s(0.02)
        driver.send_signal(signal.SIGKILL)
    assert all(wait_until_gone(int(name.read_text()), 5) for name in names)
    points = [NumberPoint(number, str(tmp_path)) for number in range(3)]
    with RowsFile(tmp_path / "rows.jsonl", NumberRow, points, "c") as rows:
        assert list(rows.rows) == points[:1]


def test_ctrl_c_keeps_the_rows_and_leaves_no_process(tmp_path: Path):
    points = [NumberPoint(number, cost=10 - number) for number in range(1, 4)]

    def interrupted(row: NumberRow) -> str:
        raise KeyboardInterrupt

    how = measurement(slow)
    how = type(how)(how.measure, how.row_type, how.noun, interrupted)
    path = tmp_path / "rows.jsonl"
    with RowsFile(path, NumberRow, points, "c") as rows, pytest.raises(KeyboardInterrupt):
        measured_points(how, points, TWO, rows)
    assert path.read_text().count("\n") == 1
