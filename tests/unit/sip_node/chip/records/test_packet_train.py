"""Time of packets in queues behind other transfers: their own train does not count."""

from sip_node.chip.records.packet_train import PacketTrain, QueueTimes
from sip_node.kernel.containers.int_array import IntArray


def channels(*indices: int) -> IntArray:
    array = IntArray()
    for index in indices:
        array.append(index)
    return array


def test_a_packet_behind_its_own_train_has_queued_behind_no_other() -> None:
    train = PacketTrain(QueueTimes())
    # All heads at 0, ten each on the link: the queue is its own.
    assert [train.at_link(0, 0, 10 * k, 10 * k + 10) for k in range(4)] == [0] * 4


def test_a_packet_queues_for_what_others_have_delayed_its_train() -> None:
    train = PacketTrain(QueueTimes())
    # Heads at 0, 10, 20: alone they would start then. Packets of another transfer come between.
    assert train.at_link(3, 0, 0, 10) == 0
    assert train.at_link(3, 10, 20, 30) == 10
    assert train.at_link(3, 20, 40, 50) == 20
    # And an idle time makes up for it.
    assert train.at_link(3, 90, 90, 100) == 0


def test_links_of_a_route_are_separate() -> None:
    train = PacketTrain(QueueTimes())
    assert train.at_link(0, 0, 0, 100) == 0
    assert train.at_link(40, 5, 25, 35) == 20
    assert train.at_link(-1, 5, 9, 35) == 4


def test_a_train_keeps_its_times_on_a_route_of_any_length() -> None:
    train = PacketTrain(QueueTimes())
    stages = (-1, 0, 9, 10, 11, 12, 30, 90)
    # Alone, the packet behind would start where the first one ends: at 100, 101, ...
    assert [train.at_link(stage, 0, 0, 100 + at) for at, stage in enumerate(stages)] == [0] * 8
    waits = [train.at_link(stage, 0, 150, 160) for stage in stages]
    assert waits == [50 - at for at in range(8)]


def test_a_head_behind_its_own_train_at_a_router_has_waited_for_no_other() -> None:
    train = PacketTrain(QueueTimes())
    # Packets 3, 4 and 6 of a link are those of the train, packet 5 is of another one.
    assert [train.at_router(7, packet, 5) for packet in (3, 4, 6)] == [5, 0, 5]
    # The first packet of a link has no other before it; it may have waited for a credit.
    assert [train.at_router(8, packet, 5) for packet in (1, 2)] == [5, 0]


def test_channels_of_a_memory_serve_a_train_side_by_side() -> None:
    train = PacketTrain(QueueTimes())
    train.at_channels(channels(0), 0, 0, 20)
    train.at_channels(channels(1), 0, 0, 20)
    assert train.times.memory_ps == 0
    # Its own access before it ends at 20; then another transfer has the channel until 35.
    train.at_channels(channels(0, 5), 3, 35, 55)
    assert train.times.memory_ps == 15
    train.at_channels(channels(1), 3, 20, 40)
    assert train.times.memory_ps == 15


def test_channels_behind_the_64th_share_the_times_of_the_first_ones() -> None:
    train = PacketTrain(QueueTimes())
    train.at_channels(channels(1, 1000), 0, 0, 20)
    # Channel 65 has the times of channel 1, 40 those of 1000.
    train.at_channels(channels(65), 0, 20, 40)
    train.at_channels(channels(40), 0, 20, 40)
    assert train.times.memory_ps == 0
    train.at_channels(channels(66), 0, 20, 40)
    assert train.times.memory_ps == 20


def test_the_longest_times_are_kept_with_their_link() -> None:
    times, other = QueueTimes(), QueueTimes()
    times.at_links(7, "a")
    times.at_links(7, "b")
    assert (times.link_ps, times.link) == (7, "a")
    other.at_links(8, "c")
    other.at_memory(2)
    times.add(other)
    assert (times.link_ps, times.link, times.memory_ps) == (8, "c", 2)
