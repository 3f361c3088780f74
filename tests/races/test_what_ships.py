"""Kernels, collectives, benches and examples have no report; without a barrier they have one."""

import subprocess
import sys

import pytest

from runtime import DPPolicy, torch
from tests.races.covering_programs import collectives
from tests.races.deleted_calls import sites_of
from tests.races.deletions import run_of
from tests.races.shipped import PARTS, checked_programs
from tests.support.checked import CUBE
from tests.support.racy_kernels import KERNELS, SIZE
from tests.support.runs import ROOT
from tests.support.world import simulate


@pytest.mark.parametrize(
    "name", ["all_reduce halving_doubling on 3 ranks", "alltoall ring on 2 ranks"]
)
def test_a_collective_has_no_report(name: str) -> None:
    [run] = checked_programs({name: collectives()[name]})
    assert [each.reports for each in run.findings] == [0, 0]
    assert run.findings[0].calls > 0


def right_kernel(rank: int) -> None:
    """A kernel whose PEs store, meet in a barrier and load."""
    del rank
    x, y = (torch.zeros(SIZE, dp=DPPolicy(pe="row_wise", num_cubes=1, num_pes=4)) for _ in "xy")
    torch.launch("right", KERNELS["barrier_missing"], x, y, 1)
    torch.ahbm.synchronize()


def test_a_barrier_that_is_deleted_is_reported() -> None:
    def program() -> None:
        simulate(right_kernel, 1, topology=CUBE)

    sites = sites_of(ROOT, ["tests/support"])
    [site] = [each for each in sites if each.function == "barrier_missing"]
    assert (site.kind, site.has_mutant) == ("barrier", True)
    assert run_of(program, None, 60).word == "clean"
    without = run_of(program, site, 60)
    assert without.word == "reported"
    assert without.detail.startswith("race: tests/support/racy_kernels.py:")
    # Only the other process has the mutant.
    assert run_of(program, None, 60).word == "clean"


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", PARTS)
def test_all_that_ships_has_no_report(part: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.races.shipped", part],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_nine_of_ten_mutants_that_end_are_reported() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.races.deletions", "--jobs", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
