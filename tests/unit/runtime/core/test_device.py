"""The times of a command, and what it reports before it is complete."""

import pytest

from runtime.core.device import Handle


def test_the_time_of_a_command_is_that_of_its_kernels_its_waiting_and_the_network():
    handle = Handle(
        (), submitted_ps=100, done=True, completed_ps=1000, queued_ps=200, kernels_ps=300
    )
    assert (handle.total_ps, handle.pe_exec_ps) == (900, 300)
    assert handle.network_ps == 900 - 300 - 200


@pytest.mark.parametrize("name", ["total_ps", "pe_exec_ps", "network_ps"])
def test_a_command_that_is_not_complete_has_no_times(name: str):
    with pytest.raises(RuntimeError, match=r"not complete: wait with torch\.ahbm\.synchronize"):
        getattr(Handle((), submitted_ps=0), name)
