"""A measured run has the time and the memory of all of its processes."""

import subprocess
import sys

import pytest

from kernbench.measure.host_speed.measured_run import measure

PROGRAM = """
import subprocess, sys
from pathlib import Path
child = "x = b'\\1' * (40 << 20)\\nfor each in range(300_000): pass\\nimport time; time.sleep(0.15)"
subprocess.run([sys.executable, "-c", child], check=True)
report = '{"digest": "abc", "wall_s": 0.1}'
Path(sys.argv[sys.argv.index("--out") + 1], "run.json").write_text(report)
"""


def test_time_and_memory_of_children_count() -> None:
    run = measure([sys.executable, "-c", PROGRAM])
    assert run.digest == "abc"
    assert run.wall_s >= 0.15
    assert run.run_s == 0.1
    assert run.cpu_s > 0
    assert run.peak_mib == 0 or run.peak_mib > 40


def test_a_command_that_fails_is_no_measurement() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        measure([sys.executable, "-c", "raise SystemExit(3)"])
