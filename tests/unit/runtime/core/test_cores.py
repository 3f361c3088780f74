"""The cores that this process may use."""

import os

import pytest

from runtime.core.cores import usable_cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_cores_that_the_process_may_not_use_do_not_count() -> None:
    all_cores = os.sched_getaffinity(0)
    assert usable_cores() == len(all_cores)
    os.sched_setaffinity(0, {min(all_cores)})
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, all_cores)
