"""Transfers that leave a port packet by packet, and others between their packets."""

from sip_node.chip.fabric.egress_stream import EgressStream
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.server import Server
from sip_node.pdes.engine import Engine

NS = 1000
"""A byte takes 1 ns at a port of 1 GB/s."""


class Pier:
    """A port of 1 GB/s; (tag, begin, size, last) of what left, its time, and that of its tail."""

    def __init__(self) -> None:
        self.engine, self.port = Engine(), Server("port", 1)
        self.stream = EgressStream(self.engine, self.port, self, 5, self._left)
        self.sent: list[tuple[int, int, int, bool]] = []
        self.times: list[tuple[int, int]] = []
        self.left: list[tuple[int, int]] = []

    def start(self, time_ns: int, tag: int, total: int) -> None:
        transfer = FabricTransfer(Kind.WRITE, 0, 5, 0, 1, tag=tag, total=total)
        self.engine.at(time_ns * NS, self.stream.start, transfer, 10)

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        assert origin == 5
        self.sent.append((packet.transfer.tag, packet.begin, packet.size, packet.last))
        self.times.append((self.engine.now_ps // NS, tail_ps // NS))

    def run(self) -> None:
        self.engine.run_before(1 << 60)

    def _left(self, transfer: FabricTransfer, left_ps: int) -> None:
        self.left.append((transfer.tag, left_ps // NS))


def test_packets_follow_each_other_without_a_gap_and_are_cut_through() -> None:
    pier = Pier()
    pier.start(0, 1, 25)
    pier.run()
    assert pier.sent == [(1, 0, 10, False), (1, 10, 10, False), (1, 20, 5, True)]
    assert pier.times == [(0, 10), (10, 20), (20, 25)]
    assert pier.left == [(1, 25)]


def test_transfers_share_the_port_packet_by_packet() -> None:
    pier = Pier()
    pier.start(0, 1, 30)
    pier.start(5, 2, 20)
    pier.run()
    # At 5 the second packet of 1 has reserved the port already.
    assert [tag for tag, *_ in pier.sent] == [1, 1, 2, 1, 2]
    assert pier.left == [(1, 40), (2, 50)]


def test_what_arrives_gets_the_port_between_two_packets() -> None:
    pier = Pier()
    pier.start(0, 1, 30)
    pier.engine.at(5 * NS, pier.port.reserve, 5 * NS, 5 * NS, 7)
    pier.run()
    assert pier.times == [(0, 10), (10, 20), (27, 37)]
