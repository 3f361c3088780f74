"""The order in which packets of several messages are served, on channels written down by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip_node.chip.fabric.server import Server
from sip_node.chip.memory.access import Access
from sip_node.chip.memory.hbm import PseudoChannels
from sip_node.chip.memory.transaction_queue import AccessQueue
from sip_node.pdes.engine import Engine
from tests.support.random_accesses import HalfTheShares
from tests.support.topologies import variant

NS = 1000
"""A byte takes 1 ns on a channel of 1 GB/s."""

Served = tuple[str, int, int]


class Lanes:
    """Channels of 1 GB/s; the offset of an access is the mask of its channels."""

    def __init__(self, count: int) -> None:
        self.channels = [Server(f"lane{index}", 1) for index in range(count)]

    def shares_of(self, access: Access) -> list[int]:
        return [
            access.nbytes if access.offset & 1 << index else 0
            for index in range(len(self.channels))
        ]

    def reserve(
        self, shares: list[int], head_ps: int, tail_ps: int, writes: bool
    ) -> tuple[int, int, int]:
        spans = [
            channel.reserve(head_ps, tail_ps, share)
            for channel, share in zip(self.channels, shares, strict=True)
            if share
        ]
        begins, ends = zip(*spans, strict=True)
        return min(begins), max(begins), max(ends)


class Bench:
    """A queue, and what it served: (name, begin of the last channel, end) in ns, by begin."""

    def __init__(self, lanes: int) -> None:
        self.engine = Engine()
        self.lanes = Lanes(lanes)
        self.queue = AccessQueue(self.engine, self.lanes)
        self.served: list[Served] = []

    def submit(self, name: str, nbytes: int, mask: int = 1) -> None:
        def begun(_first_ps: int, start_ps: int, end_ps: int) -> None:
            self.served.append((name, start_ps // NS, end_ps // NS))

        access = Access(
            message=(0, 0, ord(name[0])),
            offset=mask,
            nbytes=nbytes,
            arrived_ps=self.engine.now_ps,
            tail_ps=self.engine.now_ps,
            writes=False,
            begun=begun,
        )
        self.queue.submit(access)

    def at(self, time_ns: int, name: str, nbytes: int, mask: int = 1) -> None:
        self.engine.at(time_ns * NS, self.submit, name, nbytes, mask)

    def run(self) -> list[Served]:
        while self.engine.next_ps() < 10**12:
            self.engine.step()
        return self.served


def test_an_access_to_an_idle_channel_begins_at_once_and_needs_no_event() -> None:
    bench = Bench(1)
    bench.submit("a", 10)
    assert bench.served == [("a", 0, 10)]
    assert bench.engine.events == 0


def test_messages_are_served_in_turn_packet_by_packet() -> None:
    bench = Bench(1)
    for name in ("a0", "a1", "a2", "a3", "b0", "b1", "c0"):
        bench.submit(name, 10)
    order = [name for name, _, _ in bench.run()]
    assert order == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]
    # Back to back, without a gap.
    assert [begin for _, begin, _ in bench.served] == list(range(0, 70, 10))


def test_single_packets_are_served_in_the_order_of_arrival() -> None:
    bench = Bench(1)
    for time_ns, name in enumerate("dbca"):
        bench.at(time_ns, name, 10)
    assert [name for name, _, _ in bench.run()] == list("dbca")


def test_a_new_message_waits_for_the_packet_in_service_only() -> None:
    bench = Bench(1)
    for index in range(9):
        bench.submit(f"a{index}", 10)
    bench.at(35, "b0", 1)
    bench.at(36, "b1", 1)
    assert [each for each in bench.run() if each[0][0] == "b"] == [("b0", 40, 41), ("b1", 51, 52)]


def test_an_access_passes_those_with_which_it_shares_no_channel() -> None:
    bench = Bench(2)
    for name, mask in (("a", 0b01), ("b", 0b01), ("c", 0b10)):
        bench.submit(name, 10, mask)
    assert bench.run() == [("a", 0, 10), ("c", 0, 10), ("b", 10, 20)]


def test_an_access_begins_with_its_first_free_channel_behind_those_that_wait_for_the_others() -> (
    None
):
    bench = Bench(2)
    for name, mask in (("a", 0b01), ("b", 0b01), ("c", 0b11)):
        bench.submit(name, 10, mask)
    # c has channel 1 at once, and channel 0 after b, which came first.
    assert sorted(bench.run()) == [("a", 0, 10), ("b", 10, 20), ("c", 20, 30)]
    assert bench.lanes.channels[1].free_ps == 10 * NS


def test_nothing_begins_while_the_queue_is_held() -> None:
    bench = Bench(1)
    bench.queue.hold()
    bench.submit("a", 10)
    bench.at(5, "b", 10)
    bench.engine.at(25 * NS, bench.queue.resume)
    assert bench.run() == [("a", 25, 35), ("b", 35, 45)]


def test_an_access_may_hold_the_queue_when_it_begins() -> None:
    bench = Bench(2)
    bench.queue.hold()
    bench.submit("a", 10, mask=1)
    bench.submit("b", 10, mask=2)
    reserve = bench.lanes.reserve

    def hold_and_reserve(*span: Any) -> tuple[int, int, int]:
        bench.queue.hold()
        return reserve(*span)

    bench.lanes.reserve = hold_and_reserve
    bench.engine.at(20 * NS, bench.queue.resume)
    bench.engine.at(50 * NS, bench.queue.resume)
    assert bench.run() == [("a", 20, 30), ("b", 50, 60)]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(1, 7)), max_size=25))
def test_no_channel_is_idle_while_a_message_waits_for_it(
    arrivals: list[tuple[int, int, int]],
) -> None:
    bench = Bench(3)
    for number, (time_ns, nbytes, mask) in enumerate(arrivals):
        bench.at(time_ns, chr(number), nbytes, mask)
    assert len(bench.run()) == len(arrivals)
    # Work conservation: a channel is free as early as any order of service allows.
    for index, channel in enumerate(bench.lanes.channels):
        free_ns = 0
        for time_ns, nbytes, mask in sorted(arrivals):
            if mask & 1 << index:
                free_ns = max(free_ns, time_ns) + nbytes
        assert channel.free_ps == free_ns * NS


def test_a_message_is_not_passed_by_a_stream_of_messages_that_come_later() -> None:
    bench = Bench(1)
    for index in range(3):
        bench.submit(f"a{index}", 10)
    for index in range(20):
        bench.at(1 + 9 * index, chr(ord("b") + index), 10)
    begins = {name: begin for name, begin, _ in bench.run()}
    # a1 has its place at 10, behind b, which came at 1; a2 at 30, behind those of 10, 19 and 28.
    assert (begins["a0"], begins["a1"], begins["a2"]) == (0, 20, 60)


def test_messages_without_packets_are_dropped() -> None:
    bench = Bench(1)
    for index in range(3000):
        access = Access(
            message=(0, 0, index),
            offset=1,
            nbytes=1,
            arrived_ps=0,
            tail_ps=0,
            writes=False,
            begun=lambda *_: None,
        )
        bench.engine.at(index * NS, bench.queue.submit, access)
    bench.run()
    assert len(bench.queue._messages) < 600


def bursts_of(
    queue: AccessQueue, name: int, offset: int, nbytes: int, begins: dict[int, int]
) -> None:
    access = Access(
        message=(0, 0, name),
        offset=offset,
        nbytes=nbytes,
        arrived_ps=0,
        tail_ps=0,
        writes=False,
        begun=lambda _first_ps, start_ps, _end_ps: begins.update({name: start_ps}),
    )
    queue.submit(access)


def test_a_message_keeps_its_turn_while_others_are_dropped() -> None:
    # A queue drops messages when it has had more than this many.
    bench, messages = Bench(1), 256
    for index in range(messages):
        # One at a time: each is served before the next one comes.
        bench.at(2 * index, chr(0x4000 + index), 1)
    end_ns = 2 * messages
    bench.at(end_ns, "a0", 20)
    # Its next packet has the place of the end of the first one, and a new message is before it.
    bench.at(end_ns + 5, "a1", 1)
    bench.at(end_ns + 6, "b0", 1)
    assert bench.run()[messages:] == [
        ("a0", end_ns, end_ns + 20),
        ("b0", end_ns + 20, end_ns + 21),
        ("a1", end_ns + 21, end_ns + 22),
    ]


def test_channels_whose_numbers_differ_by_64_are_two_channels() -> None:
    topology = variant(hbm__num_pcs=100)
    burst = topology.hbm.burst_bytes
    engine, begins = Engine(), dict[int, int]()
    channels = PseudoChannels("hbm", topology)
    queue = AccessQueue(engine, channels)
    burst_ps = channels.channels[0].serialisation_ps(burst)
    bursts_of(queue, 0, 2 * burst, burst, begins)
    # Channels 1 and 2, of which the second one is busy; then 66, and 1.
    bursts_of(queue, 1, burst, 2 * burst, begins)
    bursts_of(queue, 2, 66 * burst, burst, begins)
    bursts_of(queue, 3, burst, burst, begins)
    engine.run_before(1 << 60)
    assert begins == {0: 0, 1: burst_ps, 2: 0, 3: burst_ps}


def test_methods_of_a_derived_class_are_called() -> None:
    channels, ends = HalfTheShares("hbm", variant()), list[int]()
    queue = AccessQueue(Engine(), channels)
    queue.submit(Access((0, 0, 0), 0, 4096, 0, 0, False, lambda *span: ends.append(span[2])))
    assert ends == [channels.channels[0].serialisation_ps(4096 // len(channels.channels) // 2)]


def test_an_access_to_no_bytes_is_refused() -> None:
    queue = AccessQueue(Engine(), PseudoChannels("hbm", variant()))
    with pytest.raises(AssertionError, match="an access to no bytes"):
        queue.submit(Access((0, 0, 0), 0, 0, 0, 0, False, lambda *_: None))
