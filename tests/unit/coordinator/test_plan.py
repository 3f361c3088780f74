"""The plan of a run: distribution of SIPs, refusals, the job."""

from dataclasses import replace

import pytest

from runtime.ccl.config import CclFile
from runtime.core.errors import UsageError
from runtime.model.topology import Topology
from tests.support.sessions import plan


@pytest.mark.parametrize(
    ("sips", "procs", "blocks"),
    [
        (4, 4, ((0,), (1,), (2,), (3,))),
        (4, 1, ((0, 1, 2, 3),)),
        (5, 2, ((0, 1), (2, 3, 4))),
        (3, 2, ((0,), (1, 2))),
    ],
)
def test_sips_are_dealt_in_contiguous_blocks_whose_sizes_differ_by_one_at_most(sips, procs, blocks):
    assert plan(sips, procs).sips_of_lp == blocks


def test_more_processes_than_sips_are_refused():
    with pytest.raises(UsageError, match="procs is 3: 2 SIPs can be dealt to 1 to 2 processes"):
        plan(2, 3)


def test_a_run_without_data_cannot_be_verified():
    with pytest.raises(
        UsageError, match="--verify-data with --no-data: a run without data has no results"
    ):
        replace(plan(2), data=False, verify=True)
    assert replace(plan(2), verify=True).job.verify
    assert not plan(2).job.verify


def test_a_run_that_is_not_traced_cannot_be_verified():
    with pytest.raises(UsageError, match="--verify-data with --no-trace: the op log"):
        replace(plan(2), trace=False, verify=True)
    assert not replace(plan(2), trace=False).job.trace


def test_the_job_carries_the_checked_values_of_both_files():
    checked, job = plan(3).config, plan(3).job
    assert Topology.decoded(job.topology) == checked.topology
    assert CclFile.decoded(job.ccl) == checked.ccl.file
    assert checked.topology.sips == 3
