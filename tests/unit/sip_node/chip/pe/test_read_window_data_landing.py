"""The DATA of a DMA engine: it lands in TCM in any order, or goes on to another memory."""

from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.pe.read_window import DataLanding, ReadWindow
from sip_node.pdes.engine import Engine

NS = 1000
"""A byte takes 1 ns at a port of 1 GB/s."""


class Shore:
    """A TCM whose port has 1 GB/s; what landed and when, and what was sent on."""

    def __init__(self) -> None:
        self.engine, self.sent = Engine(), list[tuple[Packet, int]]()
        self.landed: list[tuple[int, int]] = []
        window = ReadWindow(self.engine, self, 5, 1, 10, 2)
        port = Server("port", 1)
        self.landing = DataLanding(self.engine, port, self, 5, window, self._landed)

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        assert origin == 5
        self.sent.append((packet, tail_ps))

    def _landed(self, data: FabricTransfer, landed_ps: int) -> None:
        self.landed.append((data.tag, landed_ps // NS))


def data(tag: int, total: int) -> FabricTransfer:
    return FabricTransfer(Kind.DATA, 0, 1, 0, 5, tag=tag, total=total, payload=bytes(total))


def test_a_transfer_has_landed_with_the_last_packet_to_come() -> None:
    shore, transfer = Shore(), data(7, 25)
    for begin, size in ((10, 10), (20, 5), (0, 10)):
        shore.landing.accept(Packet(transfer, begin, size, last=begin == 0), 3 * NS)
    # 25 bytes at 1 GB/s, one after the other.
    assert shore.landed == [(7, 25)]


def test_transfers_land_beside_each_other() -> None:
    shore, first, second = Shore(), data(1, 20), data(2, 10)
    shore.landing.accept(Packet(first, 0, 10, last=False), 0)
    shore.landing.accept(Packet(second, 0, 10), 0)
    shore.landing.accept(Packet(first, 10, 10), 0)
    assert shore.landed == [(2, 20), (1, 30)]


def test_a_copy_sends_packets_on_as_they_come_with_all_bytes_in_the_last() -> None:
    shore, transfer = Shore(), data(7, 20)
    write = FabricTransfer(Kind.WRITE, 0, 5, 0, 2, tag=7, total=20)
    shore.landing.forward(write)
    shore.landing.accept(Packet(transfer, 10, 10, last=False), 4 * NS)
    [(first, tail_ps)] = shore.sent
    assert (first.transfer, first.begin, first.last, tail_ps) == (write, 10, False, 4 * NS)
    assert not write.payload
    shore.landing.accept(Packet(transfer, 0, 10), 6 * NS)
    assert shore.sent[1][0].last
    assert write.payload == transfer.payload
    # It never came to the TCM: the tail arrives, nothing waits for a port.
    assert shore.landed == [(7, 6)]
