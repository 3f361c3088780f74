"""Time of packets in queues behind other transfers: their own train does not count."""

from typing import Any

import pytest

from sip_node.chip.records import packet_train
from sip_node.kernel.containers import int_array
from tests.support.interpreted import interpreted


class TrainCore:
    """Trains, queueing times and sets of channels of the modules of a core."""

    def __init__(self, trains: Any, arrays: Any) -> None:
        self._trains, self._arrays = trains, arrays

    def times(self) -> Any:
        return self._trains.QueueTimes()

    def train(self) -> Any:
        return self._trains.PacketTrain(self.times())

    def channels(self, *indices: int) -> Any:
        array = self._arrays.IntArray()
        for index in indices:
            array.append(index)
        return array


@pytest.fixture(params=["core", "interpreted"])
def core(request: pytest.FixtureRequest) -> TrainCore:
    if request.param == "core":
        return TrainCore(packet_train, int_array)
    modules = packet_train.__name__, int_array.__name__
    return TrainCore(*map(interpreted, modules))


def test_a_packet_behind_its_own_train_has_queued_behind_no_other(core: TrainCore) -> None:
    train = core.train()
    # All heads at 0, ten each on the link: the queue is its own.
    assert [train.at_link(0, 0, 10 * k, 10 * k + 10) for k in range(4)] == [0] * 4


def test_a_packet_queues_for_what_others_have_delayed_its_train(core: TrainCore) -> None:
    train = core.train()
    # Heads at 0, 10, 20: alone they would start then. Packets of another transfer come between.
    assert train.at_link(3, 0, 0, 10) == 0
    assert train.at_link(3, 10, 20, 30) == 10
    assert train.at_link(3, 20, 40, 50) == 20
    # And an idle time makes up for it.
    assert train.at_link(3, 90, 90, 100) == 0


def test_links_of_a_route_are_separate(core: TrainCore) -> None:
    train = core.train()
    assert train.at_link(0, 0, 0, 100) == 0
    assert train.at_link(40, 5, 25, 35) == 20
    assert train.at_link(-1, 5, 9, 35) == 4


def test_a_train_keeps_its_times_on_a_route_of_any_length(core: TrainCore) -> None:
    train = core.train()
    stages = (-1, 0, 9, 10, 11, 12, 30, 90)
    # Alone, the packet behind would start where the first one ends: at 100, 101, ...
    assert [train.at_link(stage, 0, 0, 100 + at) for at, stage in enumerate(stages)] == [0] * 8
    waits = [train.at_link(stage, 0, 150, 160) for stage in stages]
    assert waits == [50 - at for at in range(8)]


def test_a_head_behind_its_own_train_at_a_router_has_waited_for_no_other(core: TrainCore) -> None:
    train = core.train()
    # Packets 3, 4 and 6 of a link are those of the train, packet 5 is of another one.
    assert [train.at_router(7, packet, 5) for packet in (3, 4, 6)] == [5, 0, 5]
    # The first packet of a link has no other before it; it may have waited for a credit.
    assert [train.at_router(8, packet, 5) for packet in (1, 2)] == [5, 0]
    # The second packet of a link, whose first one is of another train.
    assert train.at_router(9, 2, 5) == 5


def test_channels_of_a_memory_serve_a_train_side_by_side(core: TrainCore) -> None:
    train = core.train()
    train.at_channels(core.channels(0), 0, 0, 20)
    train.at_channels(core.channels(1), 0, 0, 20)
    assert train.times.memory_ps == 0
    # Its own access before it ends at 20; then another transfer has the channel until 35.
    train.at_channels(core.channels(0, 5), 3, 35, 55)
    assert train.times.memory_ps == 15
    train.at_channels(core.channels(1), 3, 20, 40)
    assert train.times.memory_ps == 15
    # Alone, the access before would have ended at 40.
    train.at_channels(core.channels(0), 4, 60, 80)
    assert train.times.memory_ps == 20


def test_channels_behind_the_64th_share_the_times_of_the_first_ones(core: TrainCore) -> None:
    train = core.train()
    train.at_channels(core.channels(1, 1000), 0, 0, 20)
    # Channel 65 has the times of channel 1, 40 those of 1000.
    train.at_channels(core.channels(65), 0, 20, 40)
    train.at_channels(core.channels(40), 0, 20, 40)
    assert train.times.memory_ps == 0
    train.at_channels(core.channels(66), 0, 20, 40)
    assert train.times.memory_ps == 20


def test_a_packet_waits_at_a_port_for_what_others_have_delayed_its_train(core: TrainCore) -> None:
    train = core.train()
    # Heads at 0, 5 and 10, ten each in the port: alone they would start at 0, 10 and 20.
    train.at_port(0, 0, 10)
    train.at_port(5, 10, 20)
    assert train.times.memory_ps == 0
    # Packets of another transfer come between, for 7 and then for 4 more.
    train.at_port(10, 27, 37)
    assert train.times.memory_ps == 7
    train.at_port(10, 41, 51)
    assert train.times.memory_ps == 11


def test_a_first_packet_waits_for_others_since_the_first_picosecond(core: TrainCore) -> None:
    port, channel = core.train(), core.train()
    port.at_port(0, 9, 19)
    channel.at_channels(core.channels(0), 0, 9, 19)
    assert port.times.memory_ps == channel.times.memory_ps == 9
    assert port.at_link(0, 0, 9, 19) == 9


def test_the_longest_times_are_kept_with_their_link(core: TrainCore) -> None:
    times, other = core.times(), core.times()
    assert (times.link_ps, times.link, times.memory_ps) == (0, "", 0)
    times.at_links(7, "a")
    times.at_links(7, "b")
    assert (times.link_ps, times.link) == (7, "a")
    other.at_links(8, "c")
    other.at_memory(2)
    times.add(other)
    assert (times.link_ps, times.link, times.memory_ps) == (8, "c", 2)
