"""The streams of a rank without a chip: which command waits for which."""

from sys import getrecursionlimit
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.device import COMMUNICATION_STREAM, DEFAULT_STREAM
from runtime.core.requests import KernelLaunchMsg, MemoryReadMsg, MemoryWriteMsg, Transfer
from sip_node.chip.host.streams import Command, Resource, Streams, resources_of

Kind = tuple[int, frozenset[str]]
KINDS = st.tuples(
    st.sampled_from((DEFAULT_STREAM, COMMUNICATION_STREAM, 2)),
    st.frozensets(st.sampled_from("abc"), max_size=2),
)


def command(kind: Kind) -> Command:
    stream, resources = kind
    return Command((), 0, stream=stream, resources=frozenset[Resource](resources))


def uses(stream: int, *tensors: str) -> Kind:
    return stream, frozenset(tensors)


def waits_of(*kinds: Kind) -> list[tuple[int, ...]]:
    """The commands that each command waits for; they are numbered from 1 on, and none completes."""
    streams = Streams()
    commands = [command(kind) for kind in kinds]
    for each in commands:
        streams.submit(each)
    return [each.waits_for for each in commands]


def test_a_stream_is_serial() -> None:
    assert waits_of(uses(0, "a"), uses(0, "b"), uses(0)) == [(), (1,), (2,)]


def test_streams_run_side_by_side() -> None:
    assert waits_of(uses(0, "a"), uses(2, "b"), uses(0, "c"), uses(2)) == [(), (), (1,), (2,)]


def test_a_command_waits_for_the_latest_command_of_every_stream_with_a_common_tensor() -> None:
    kinds = uses(0, "a"), uses(0, "a", "b"), uses(0, "c"), uses(2, "b"), uses(3, "a", "b")
    assert waits_of(*kinds)[3:] == [(2,), (2, 4)]


def test_later_commands_of_a_stream_wait_for_what_it_was_ordered_to_wait_for() -> None:
    streams = Streams()
    first, second, third = (command(uses(stream)) for stream in (0, 2, 2))
    streams.submit(first)
    streams.order_after(2, streams.latest(0))
    assert streams.latest(2) == (first,)
    streams.submit(second)
    streams.submit(third)
    assert (second.waits_for, third.waits_for) == ((1,), (2,))


def test_of_the_commands_of_one_stream_a_later_one_of_another_waits_for_the_latest() -> None:
    streams = Streams()
    collectives = [command(uses(COMMUNICATION_STREAM)) for _ in range(3)]
    for each in collectives:
        streams.submit(each)
    # In another order than that of submission.
    streams.order_after(DEFAULT_STREAM, collectives[1:])
    streams.order_after(DEFAULT_STREAM, collectives[:1])
    assert streams.latest(DEFAULT_STREAM) == (*collectives[1:], collectives[0])
    streams.order_after_stream(2, DEFAULT_STREAM)
    assert streams.latest(2) == (collectives[2],)
    later = [command(uses(stream)) for stream in (2, DEFAULT_STREAM)]
    for each in later:
        streams.submit(each)
    assert [each.waits_for for each in later] == [(3,), (3,)]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(KINDS, st.integers(0, 2), st.integers(0, 2)), max_size=9), st.data())
def test_a_stream_waits_for_another_one_as_for_its_latest_commands(
    steps: list[tuple[Kind, int, int]], data: st.DataObject
) -> None:
    by_stream, by_handles = Streams(), Streams()
    pairs = list[tuple[Command, Command]]()
    for kind, stream, other in steps:
        by_stream.order_after_stream(stream, other)
        by_handles.order_after(stream, by_handles.latest(other))
        pairs.append((command(kind), command(kind)))
        by_stream.submit(pairs[-1][0])
        by_handles.submit(pairs[-1][1])
        assert pairs[-1][0].waits_for == pairs[-1][1].waits_for
        # The first ones to complete are the earliest: no command waits for a later one.
        for _ in range(data.draw(st.integers(0, len(pairs)))):
            for streams, done in zip((by_stream, by_handles), pairs.pop(0), strict=True):
                done.done = True
                streams.complete(done)


def test_what_is_answered_is_waited_for_by_no_later_command() -> None:
    streams = Streams()
    first, second = (command(uses(stream, "a")) for stream in (0, 2))
    streams.submit(first)
    streams.order_after(2, (first,))
    first.done = True
    streams.complete(first)
    streams.order_after(2, (first,))
    assert streams.latest(2) == ()
    streams.submit(second)
    assert second.waits_for == ()


def test_launches_share_the_threads_of_their_pes_and_no_others() -> None:
    def launch(stream: int, call: str, *pes: tuple[int, int]) -> Command:
        used = resources_of([KernelLaunchMsg("k", print, (), pes, call=call)], frozenset())
        return Command((), 0, stream=stream, resources=used)

    streams = Streams()
    launches = [
        launch(2, "", (0, 0), (0, 1)),
        launch(3, "", (0, 1)),
        launch(4, "", (0, 2)),
        launch(5, "world #1", (0, 1)),
        launch(3, "", (0, 0)),
        launch(6, "", (0, 0), (0, 1), (0, 2)),
    ]
    for each in launches:
        streams.submit(each)
    assert [each.waits_for for each in launches] == [(), (1,), (), (), (1, 2), (1, 3, 5)]
    for each in launches:
        streams.complete(each)
    last = launch(7, "", (0, 0))
    streams.submit(last)
    assert last.waits_for == ()


def test_the_numbers_of_new_streams_are_new() -> None:
    streams = Streams()
    numbers = {streams.new_stream() for _ in range(3)}
    assert len(numbers | {DEFAULT_STREAM, COMMUNICATION_STREAM}) == 5


def waits(earlier: Kind, later: Kind) -> bool:
    """The rule for two commands."""
    return earlier[0] == later[0] or bool(earlier[1] & later[1])


@settings(deadline=None, max_examples=50)
@given(st.lists(KINDS, max_size=9), st.data())
def test_a_command_waits_directly_or_through_others_for_all_that_conflict(
    kinds: list[Kind], data: st.DataObject
) -> None:
    """Commands complete while others are submitted, in any order that their waits allow."""
    streams, submitted = Streams(), list[Command]()
    left = dict[int, Command]()
    for kind in kinds:
        each = command(kind)
        streams.submit(each)
        submitted.append(each)
        left[each.number] = each
        reached, frontier = set[int](), [*each.waits_for]
        while frontier:
            number = frontier.pop()
            reached.add(number)
            frontier.extend(submitted[number - 1].waits_for)
        conflicts = {number for number in left if waits(kinds[number - 1], kind)} - {each.number}
        assert conflicts <= reached
        assert set(each.waits_for) <= left.keys()
        assert all(number < each.number for number in each.waits_for)
        ready = [number for number in left if not left.keys() & set(left[number].waits_for)]
        for number in data.draw(st.lists(st.sampled_from(ready), unique=True)):
            done = left.pop(number)
            done.done = True
            streams.complete(done)
    earliest = min(left, default=None)
    assert streams.earliest is (None if earliest is None else left[earliest])


def transfer(stream: int, end: Literal["send", "recv"], begin: int, stop: int) -> Command:
    """A send or receive of bytes of tensor `x`."""
    message = Transfer(
        end=end,
        direction="global_rank_1",
        peer=1,
        elements="",
        begin=begin,
        stop=stop,
        tag=0,
        function="isend",
        line="",
    )
    launch = KernelLaunchMsg(end, print, (), ((0, 0),), transfer=message)
    used = resources_of([launch], frozenset("x"))
    assert used == {"x"}, "the thread of transfers holds any number of them"
    return Command((launch,), 0, stream=stream, resources=used)


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (("send", 0, 8), ("send", 0, 8), False),
        (("recv", 0, 8), ("recv", 8, 16), False),
        (("recv", 0, 8), ("send", 8, 16), False),
        (("recv", 0, 9), ("send", 8, 16), True),
        (("send", 8, 16), ("recv", 0, 9), True),
        (("recv", 0, 8), ("recv", 0, 8), True),
    ],
)
def test_transfers_wait_for_each_other_only_if_they_share_bytes_and_one_receives(
    first: tuple[Literal["send", "recv"], int, int],
    second: tuple[Literal["send", "recv"], int, int],
    waits: bool,
) -> None:
    streams, later = Streams(), transfer(3, *second)
    streams.submit(transfer(2, *first))
    streams.submit(later)
    assert later.waits_for == ((1,) if waits else ())


def test_a_read_waits_for_receives_and_anything_else_for_sends_too() -> None:
    streams, resources = Streams(), frozenset[Resource]("x")
    streams.submit(transfer(2, "send", 0, 8))
    streams.submit(transfer(3, "recv", 8, 16))
    read = Command((MemoryReadMsg(0, 4),), 0, resources=resources)
    write = Command((MemoryWriteMsg(0, 4, b""),), 0, stream=4, resources=resources)
    for each in (read, write):
        streams.submit(each)
    assert (read.waits_for, write.waits_for) == ((2,), (1, 2, 3))


def test_what_holds_up_a_command_is_the_first_one_that_waits_for_none() -> None:
    streams = Streams()
    first, second, third = (command(uses(0, "a")) for _ in range(3))
    for each in (first, second, third):
        streams.submit(each)
    assert [streams.holding(each) for each in (first, second, third)] == [None, first, first]
    streams.complete(first)
    assert streams.holding(second) is None


def test_a_chain_of_waits_may_be_longer_than_the_stack_of_python() -> None:
    streams = Streams()
    commands = [command(uses(0)) for _ in range(2 * getrecursionlimit())]
    for each in commands:
        streams.submit(each)
    assert streams.holding(commands[-1]) is commands[0]
