"""The states of a receive; their events are tested on a chip in tests/integration."""

import pytest

from runtime.core.dtypes import int8
from sip_node.programs.kernel_receive import Receive, ReceiveState


def receive() -> Receive:
    return Receive(direction="W", dtype=int8, targets=(), line="kernel.py:1", in_tcm=True)


def test_a_receive_reads_slot_after_slot_until_it_is_complete() -> None:
    posted = receive()
    for state in (
        ReceiveState.READING,
        ReceiveState.ISSUING,
        ReceiveState.AWAITING_SLOT,
        ReceiveState.READING,
        ReceiveState.COMPLETE,
    ):
        posted.enter(state)
    assert posted.state is ReceiveState.COMPLETE


@pytest.mark.parametrize("end", [ReceiveState.COMPLETE, ReceiveState.FAILED])
@pytest.mark.parametrize("state", ReceiveState)
def test_a_receive_that_has_ended_changes_its_state_no_more(
    end: ReceiveState, state: ReceiveState
) -> None:
    ended = receive()
    ended.state = end
    with pytest.raises(AssertionError, match="a receive goes from"):
        ended.enter(state)


def test_a_receive_is_not_complete_before_it_has_read() -> None:
    with pytest.raises(AssertionError, match=r"POSTED.* to .*COMPLETE"):
        receive().enter(ReceiveState.COMPLETE)
