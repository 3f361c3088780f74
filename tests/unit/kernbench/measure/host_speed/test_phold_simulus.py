"""PHOLD on simulus has the arrivals of the loop of `pdes`, and is left out where it is missing."""

import subprocess
import sys

import pytest

from kernbench.measure.host_speed.phold_simulus import main

SMALL = ("--entities", "8", "--jobs", "2", "--end-ns", "400")


@pytest.mark.slow
@pytest.mark.multiproc
@pytest.mark.parametrize("lps", ["1", "2"])
def test_both_execute_the_same_arrivals(lps: str) -> None:
    # Another number of arrivals would end the program with an error. In a process of its own, since
    # simulus keeps its processes until the interpreter ends.
    pytest.importorskip("simulus")
    command = [
        sys.executable,
        "-m",
        "kernbench.measure.host_speed.phold_simulus",
        "--lps",
        lps,
        *SMALL,
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    arrivals, last = done.stdout.splitlines()
    assert int(arrivals.split()[0]) > 150
    assert last.startswith(f"pdes / simulus, --lps {lps}: ")
    assert float(last.split()[-1]) > 0


def test_without_simulus_the_error_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "simulus", None)
    monkeypatch.setattr(sys, "argv", ["phold_simulus"])
    with pytest.raises(SystemExit, match="error: simulus is not installed; `make bench` installs"):
        main()
