"""Kernels, collectives, benches and examples have no report; without a barrier they have one."""

import subprocess
import sys
from functools import partial

import pytest

from runtime import DPPolicy, torch
from tests.races.covering_programs import Program, collectives
from tests.races.deleted_calls import LATE_SEND, CallSite, sites_of
from tests.races.deletions import run_of, verdict_of
from tests.races.needless_waits import ENDS
from tests.races.shipped import PARTS, checked_programs
from tests.support.checked import CUBE
from tests.support.joined import ccl_text
from tests.support.racy_kernels import KERNELS, SIZE
from tests.support.runs import ROOT
from tests.support.world import simulate

dist = torch.distributed


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


def sending_kernel(rank: int, name: str) -> None:
    """A right kernel of PEs in a ring."""
    del rank
    dist.init_process_group("ahbm")
    x, y = (torch.zeros(SIZE, dp=DPPolicy(pe="row_wise", num_cubes=1, num_pes=4)) for _ in "xy")
    torch.launch("sending", KERNELS[name], x, y, 1)
    torch.ahbm.synchronize()


def sites_and_program(name: str) -> tuple[list[CallSite], Program]:
    """The calls of a kernel whose PEs send, and a program that runs it."""
    sites = [each for each in sites_of(ROOT, ["tests/support"]) if each.function == name]
    program = partial(sending_kernel, name=name)
    return sites, lambda: simulate(program, 1, topology=CUBE, ccl=ccl_text("pe_ring"))


def test_a_wait_that_orders_a_store_is_reported_and_one_at_the_end_is_needless() -> None:
    sites, program = sites_and_program("token_before_store")
    runs = {"ring": run_of(program, None, 60)}
    words = [
        (verdict.word, verdict.detail)
        for site in sites
        if site.kind == "wait"
        for verdict in [verdict_of(site, {"ring": program}, runs)]
    ]
    assert [word for word, _ in words] == ["reported", "needless"]
    assert words[1][1] == ENDS


def test_a_send_that_is_moved_behind_a_receive_comes_too_late() -> None:
    sites, program = sites_and_program("sent_before_overwrite")
    [site] = [each for each in sites if each.kind == LATE_SEND]
    late = run_of(program, site, 60)
    assert (late.word, late.detail.split(":")[0]) == ("failed", "IpcqDeadlock")


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
