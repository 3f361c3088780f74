"""The links between SIPs with credits: room, credits, what a peer may not send."""

import pytest

from runtime.core.errors import ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.model.topology import parse_topology
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.chip_model import ChipModel
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.partition import Partition
from sip_node.chip.ports.credited_ports import ingress_bytes
from sip_node.chip.ports.packet_runs import PacketRuns
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from sip_node.pdes.sync import Sync
from tests.support.links import Crossing, OpenEnds
from tests.support.packets import lone_packet
from tests.support.topologies import variant_text

LONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}, "cube__pe_layout__pe_per_corner": 1}
CREDITS = variant_text(**LONE_CUBE, noc__flow_control="credits")
# Two UCIe ports of 8 ns, 20 mm of wire, the IO NoC of the neighbour with 2 ns.
CROSSING_PS = 2 * 8_000 + 200 + 2_000


class CreditedEdge:
    """SIP 0 of a ring alone; what crosses its links is kept."""

    def __init__(self, sips: int = 3) -> None:
        self.topology = parse_topology(CREDITS, "topology.yaml", sips)
        self.engine = Engine()
        self.spec = chip_spec(self.topology, data=False)
        self.chip = Chip(self.spec, 0, self.engine, OpLog(None))
        self.posted = OpenEnds(self.chip, self.spec.sips.neighbours(0)).crossings
        self.seq = 0

    def write(self, size: int, sip: int = 1) -> None:
        """A WRITE of a PE leaves now for an HBM slice of another SIP."""
        graph = self.spec.graph
        address = self.spec.addresses.pe_hbm_addr(sip, 0, 1, 0)
        source, target = (0, graph.pe(0, 0)), (sip, graph.hbm(0, 1))
        packet = lone_packet(Kind.WRITE, source, target, size, address=address)
        self.chip.fabric.send(packet, graph.pe(0, 0), self.engine.now_ps)

    def deliver(self, packet: Packet, time_ps: int, *, source: int = 1, tail_ps: int = 0) -> str:
        """A packet comes from another LP; returns the rule that it breaks."""
        boundary = self.chip.boundary
        fault = boundary.fault(packet, source)
        if not fault:
            self.seq += 1
            boundary.arrive(time_ps, source, self.seq, max(time_ps, tail_ps), packet)
        return fault

    def credit(self, size: int, *, network: int = 0, source: int = 1) -> Packet:
        noc = self.spec.graph.io_noc
        return lone_packet(Kind.LINK_CREDIT, (source, noc), (0, noc), size, tag=network)

    def ack(self, source: int, sip: int, size: int = 64) -> Packet:
        """The ACK of a memory of SIP `source` to a PE of SIP `sip`."""
        graph = self.spec.graph
        return lone_packet(Kind.ACK, (source, graph.hbm(0, 0)), (sip, graph.pe(0, 0)), size)

    def run(self) -> list[Crossing]:
        self.engine.run_before(NEVER_PS)
        return self.posted


def test_packets_cross_until_the_buffer_is_full_and_go_on_with_a_credit() -> None:
    edge = CreditedEdge()
    size = edge.topology.packet_bytes
    fit = ingress_bytes(edge.topology) // size
    for _ in range(fit + 3):
        edge.write(size)
    assert len(edge.run()) == fit
    assert edge.chip.broken_law()
    credited_ps = edge.engine.now_ps + 500
    assert edge.deliver(edge.credit(2 * size), credited_ps) == ""
    assert len(edge.run()) == fit + 2
    assert edge.posted[fit].time_ps == credited_ps + CROSSING_PS


def test_a_reply_does_not_wait_for_a_buffer_full_of_requests() -> None:
    edge = CreditedEdge()
    size, graph = edge.topology.packet_bytes, edge.spec.graph
    for _ in range(2 * ingress_bytes(edge.topology) // size):
        edge.write(size)
    full = len(edge.run())
    packet = lone_packet(Kind.ACK, (0, graph.hbm(0, 0)), (1, graph.pe(0, 0)), 16)
    edge.chip.fabric.send(packet, graph.hbm(0, 0), edge.engine.now_ps)
    assert [crossing.packet.transfer.kind for crossing in edge.run()[full:]] == [Kind.ACK]


def test_a_credit_returns_over_the_crossing_when_a_packet_has_left_its_buffer() -> None:
    edge = CreditedEdge()
    graph = edge.spec.graph
    packet = lone_packet(
        Kind.WRITE,
        (1, graph.pe(0, 0)),
        (0, graph.hbm(0, 0)),
        1024,
        address=edge.spec.addresses.pe_hbm_addr(0, 0, 0, 0),
    )
    packet.last = False
    assert edge.deliver(packet, 100_000, tail_ps=108_000) == ""
    [crossing] = edge.run()
    credit = crossing.packet
    assert (credit.transfer.kind, credit.transfer.tag) == (Kind.LINK_CREDIT, 0)
    assert credit.size == 1024
    # The tail is there at 108 ns; its flit is on the first link at the end of that cycle of 0.5 ns.
    assert crossing.time_ps == 108_500 + CROSSING_PS
    # What is on its way is not lost: the laws hold again once everything has come home.
    assert edge.chip.broken_law() == ""


def test_a_forwarded_packet_keeps_its_buffer_until_its_tail_is_on_the_next_link() -> None:
    edge = CreditedEdge(sips=4)
    assert edge.deliver(edge.ack(3, 1, 1280), 100_000, source=3) == ""
    onward, credit = edge.run()
    assert (onward.target, onward.time_ps) == (1, 100_000 + CROSSING_PS)
    assert credit.target == 3
    # 1280 B at 128 GB/s.
    assert credit.time_ps == 100_000 + 10_000 + CROSSING_PS


def test_a_credit_that_exceeds_what_was_sent_names_the_peer() -> None:
    partition = Partition(((0,), (1,)), CreditedEdge(sips=2).spec)
    sync = Sync(0, 2, partition.channels_in(0), partition.channels_out(0))
    edge = CreditedEdge(sips=2)
    model = ChipModel(0, partition, sync, edge.spec, {0: OpLog(None)})
    credits_of = PacketRuns(1, 0)
    credits_of.arrive(50_000, 1, 0, 50_000, edge.credit(64))
    [(_, message)] = credits_of.take()
    with pytest.raises(ProtocolError, match="LP 1: a credit of 64 B for requests, layer 0"):
        model.deliver(message)


def test_a_packet_that_comes_without_room_or_the_wrong_way_is_refused() -> None:
    edge = CreditedEdge(sips=4)
    assert edge.deliver(edge.ack(1, 0, ingress_bytes(edge.topology)), 100_000) == ""
    assert "whose buffer has 0 B free" in edge.deliver(edge.ack(1, 0), 200_000)
    for sip in (1, 2):
        fault = edge.deliver(edge.ack(1, sip), 300_000)
        assert fault == f"field sip: no packet from SIP 1 to {sip} comes by here"
    fault = edge.deliver(edge.credit(1, source=2), 400_000)
    assert fault == "field sip: a credit goes from a SIP to its neighbour"
