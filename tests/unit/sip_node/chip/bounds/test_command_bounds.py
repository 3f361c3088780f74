"""The earliest message of a kernel that is still to be launched."""

from collections.abc import Sequence
from fractions import Fraction

from runtime.core.requests import (
    KernelLaunchMsg,
    MemoryReadMsg,
    MemoryWriteMsg,
    MmuMapMsg,
    Request,
)
from runtime.core.simtime import NEVER_PS
from sip_node.chip.bounds.command_bounds import AnswerLink, CommandBounds, CommandTimes
from sip_node.chip.fabric.server import Server

TIMES = CommandTimes(
    submit_ps=1,
    down_ps=10,
    up_ps=20,
    message_ps=300,
    launch_ps=500,
    ended_ps=40,
    order_ps=100,
    byte_ps=Fraction(2),
)
LATER_PS = TIMES.submit_ps + TIMES.down_ps + TIMES.message_ps
"""The time from when the rank goes on to the first message of a kernel that it then launches."""
MAP = MmuMapMsg(0, ())


def launch(queues: str = "") -> KernelLaunchMsg:
    return KernelLaunchMsg("kernel", int, (), ((0, 0),), queues)


def submitted(*commands: Sequence[Request], streams: Sequence[int] = ()) -> CommandBounds:
    """Commands 1, 2, ... depart at 0 and wait for each other, or for those of their stream."""
    bounds = CommandBounds(TIMES)
    for index, requests in enumerate(commands):
        stream = streams[index] if streams else 0
        before = [n for n in range(1, index + 1) if not streams or streams[n - 1] == stream]
        bounds.submitted(index + 1, stream, tuple(before[-1:]), 0, requests)
    return bounds


def test_a_rank_that_runs_may_launch_at_once() -> None:
    assert CommandBounds(TIMES).earliest_message_ps(7) == 7 + LATER_PS


def test_a_rank_that_has_returned_launches_nothing() -> None:
    bounds = submitted([launch()])
    bounds.rank_ended()
    assert bounds.earliest_message_ps(7) == NEVER_PS


def test_a_rank_that_waits_for_a_kernel_launches_nothing_before_its_answer() -> None:
    bounds = submitted([launch()])
    bounds.rank_waits(1)
    answered_ps = TIMES.down_ps + TIMES.launch_ps + TIMES.up_ps
    assert bounds.earliest_message_ps(7) == answered_ps + LATER_PS
    bounds.stamped(1, 2000, launch())
    answered_ps = 2000 + TIMES.ended_ps + TIMES.up_ps
    assert bounds.earliest_message_ps(7) == answered_ps + LATER_PS


def test_a_kernel_that_computes_keeps_its_rank_waiting() -> None:
    bounds = submitted([launch()])
    bounds.rank_waits(1)
    bounds.stamped(1, 1000, launch())
    ends_ps = [5000]
    bounds.not_before(1, 3000, lambda: ends_ps[0])
    for ends_ps[0], expected_ps in ((5000, 5000), (9000, 9000), (0, 3000)):
        answered_ps = expected_ps + TIMES.ended_ps + TIMES.up_ps
        assert bounds.earliest_message_ps(1000) == answered_ps + LATER_PS


def test_of_several_kernels_of_a_launch_the_longest_wait_counts() -> None:
    bounds = submitted([launch()])
    bounds.rank_waits(1)
    bounds.stamped(1, 1000, launch())
    bounds.not_before(1, 1000, lambda: 9000)
    bounds.not_before(1, 2000, lambda: 2000)
    answered_ps = 9000 + TIMES.ended_ps + TIMES.up_ps
    assert bounds.earliest_message_ps(1000) == answered_ps + LATER_PS


def test_a_rank_goes_on_after_the_known_end_of_a_launch_and_not_later() -> None:
    bounds = submitted([launch()])
    bounds.rank_waits(1)
    bounds.stamped(1, 1000, launch())
    # The end at the IO_CPU: the way from the PEs is behind.
    bounds.complete_at(1, 9000)
    assert bounds.earliest_message_ps(1000) == 9000 + TIMES.up_ps + LATER_PS


def test_the_answer_to_a_complete_command_is_on_its_way() -> None:
    bounds = submitted([launch()])
    bounds.rank_waits(1)
    bounds.stamped(1, 1000, launch())
    bounds.completed(1, 4000)
    assert bounds.earliest_message_ps(4001) == 4000 + TIMES.up_ps + LATER_PS
    assert bounds.earliest_message_ps(4030) == 4030 + LATER_PS


def test_what_is_read_reaches_the_host_behind_its_first_bytes() -> None:
    bounds = submitted([MemoryReadMsg(0, 1000)])
    bounds.rank_waits(1)
    answered_ps = TIMES.down_ps + 1000 * TIMES.byte_ps + TIMES.up_ps
    assert bounds.earliest_message_ps(7) == answered_ps + LATER_PS
    # At the IO_CPU with its head: its bytes are still on the link.
    bounds.completed(1, TIMES.down_ps + 20)
    assert bounds.earliest_message_ps(TIMES.down_ps + 30) == answered_ps + LATER_PS


def test_a_rank_that_waits_for_any_answer_may_go_on_with_the_next_event() -> None:
    bounds = submitted([launch()], [launch()])
    bounds.rank_waits(None)
    assert bounds.earliest_message_ps(7) == 7 + LATER_PS


def test_commands_of_a_stream_run_one_after_another() -> None:
    bounds = submitted([MAP], [launch()], [MAP], [MemoryReadMsg(0, 1000)])
    bounds.rank_waits(4)
    before_ps = TIMES.down_ps + TIMES.order_ps + TIMES.launch_ps + TIMES.order_ps
    answered_ps = before_ps + 1000 * TIMES.byte_ps + TIMES.up_ps
    assert bounds.earliest_message_ps(7) == answered_ps + LATER_PS
    # The first has become late: all behind it have.
    assert bounds.earliest_message_ps(1000) == answered_ps + 1000 - 110 + LATER_PS
    bounds.completed(1, 1200)
    bounds.released(2, 1200)
    assert bounds.earliest_message_ps(1200) == answered_ps + 1200 - 110 + LATER_PS


def test_a_command_is_complete_only_when_the_link_of_the_host_has_carried_its_bytes() -> None:
    bounds = submitted([MemoryWriteMsg(0, 400, b"")], [MemoryWriteMsg(0, 600, b"")], streams=(0, 1))
    bounds.rank_waits(1)
    answered_ps = 400 * TIMES.byte_ps + TIMES.down_ps + TIMES.up_ps
    assert bounds.earliest_message_ps(7) == answered_ps + LATER_PS
    bounds.rank_waits(2)
    answered_ps = 1000 * TIMES.byte_ps + TIMES.down_ps + TIMES.up_ps
    assert bounds.earliest_message_ps(7) == answered_ps + LATER_PS


def test_a_launch_that_may_send_bounds_from_its_release_to_its_stamp() -> None:
    bounds = submitted([MAP], [launch("ring")])
    bounds.rank_ended()
    assert bounds.earliest_message_ps(7) == TIMES.down_ps + TIMES.order_ps + TIMES.message_ps
    assert bounds.earliest_message_ps(900) == 900 + TIMES.message_ps
    bounds.completed(1, 950)
    bounds.released(2, 950)
    bounds.stamped(2, 1000, launch("ring"))
    assert bounds.earliest_message_ps(950) == NEVER_PS


def test_a_command_waits_for_those_of_other_streams_too() -> None:
    bounds = submitted([launch()], [MAP], streams=(0, 1))
    bounds.submitted(3, 2, (1, 2), 0, [launch("ring")])
    bounds.rank_ended()
    stamped_ps = TIMES.down_ps + TIMES.launch_ps
    assert bounds.earliest_message_ps(7) == stamped_ps + TIMES.message_ps
    bounds.stamped(1, 2000, launch())
    assert bounds.earliest_message_ps(7) == 2000 + TIMES.ended_ps + TIMES.message_ps


def test_of_many_launches_that_wait_the_next_event_bounds_all() -> None:
    launches = [[launch("ring")]] * 9
    bounds = submitted([MAP], *launches)
    bounds.rank_ended()
    assert bounds.earliest_message_ps(7) == 7 + TIMES.message_ps


def test_an_answer_comes_behind_the_packets_that_have_reserved_its_link() -> None:
    bounds, link = submitted([launch()]), Server("link", 1.0)
    answers = AnswerLink(link, after_ps=30)
    bounds.rank_waits(1)
    bounds.running(1, answers)
    bounds.running(1, answers)
    link.reserve(0, 0, 5)
    answered_ps = 5000 + 30 + TIMES.up_ps
    assert bounds.earliest_message_ps(7) == answered_ps + LATER_PS
    bounds.ended(1, answers)
    assert bounds.earliest_message_ps(7) == answered_ps + LATER_PS
    # The last kernel has ended: its answer may have passed the link.
    bounds.ended(1, answers)
    assert bounds.earliest_message_ps(7) < answered_ps
