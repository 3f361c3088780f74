"""Clocked routers in a whole SIP: times of packets alone, order, room at endpoints, laws."""

from itertools import pairwise

import pytest

from runtime.core.run_tables import LINKS
from runtime.core.simtime import NEVER_PS
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.sip_fabric import SipFabric
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.bounds.command_bounds import CommandBounds
from sip_node.chip.bounds.send_bounds import SendBounds
from sip_node.chip.fabric.clocked.credited_fabric import CreditedFabric
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.records.link_loads import LinkLoads
from sip_node.pdes.engine import Engine
from tests.support.packets import lone_packet
from tests.support.recorded import Recorded
from tests.support.topologies import small

TOPOLOGY = small()
GRAPH = ChipGraph(TOPOLOGY)
ROUTES = ChipRoutes(GRAPH)
SIPS = SipFabric(TOPOLOGY)
LAYERS = VirtualLayers(GRAPH, ROUTES, SIPS)
PERIOD_PS, FLIT_BYTES = 500, 128


class CreditedNet:
    """A fabric with a sink at some nodes: `arrived` are (tag, time)."""

    def __init__(self, capacity_bytes: int | None = None) -> None:
        self.engine = Engine()
        bounds = SendBounds({}, CommandBounds(), answers=False)
        self.fabric = CreditedFabric(self.engine, GRAPH, ROUTES, LAYERS, SIPS, 0, bounds, {})
        self.arrived: list[tuple[int, int]] = []
        self.packets: list[Packet] = []
        for node in GRAPH.nodes:
            if node.kind in ("pe", "hbm_ctrl", "sram", "m_cpu", "host"):
                self.fabric.attach(node.index, self, capacity_bytes)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        assert tail_ps == self.engine.now_ps
        self.arrived.append((packet.transfer.tag, tail_ps))
        self.packets.append(packet)

    def send(self, source: int, target: int, nbytes: int, at_ps: int = 0, tag: int = 0) -> None:
        packet = lone_packet(Kind.WRITE, (0, source), (0, target), nbytes, tag=tag)
        self.engine.at(at_ps, self.fabric.send, packet, source, at_ps)

    def run(self) -> list[tuple[int, int]]:
        self.engine.run_before(NEVER_PS)
        return self.arrived


def flit_cycles(bw_gbs: float) -> int:
    """The cycles of a flit on a link, rounded up."""
    return -(-FLIT_BYTES * 1000 // (int(bw_gbs) * PERIOD_PS))


def alone_cycles(source: int, target: int, flits: int, spread: int = 0) -> int:
    """The last of the times at which the tail can be there, over the links that may hold it up.

    The head takes all stages of a router. The other flits only traverse it, one behind the other at
    the rate of each link. At the source, one comes `spread` cycles after the other.
    """
    head, tails, pending_ps, stages = 0, [(flits - 1) * spread], 0, 0
    for a, b in pairwise(ROUTES.route(source, target).nodes):
        link, node = GRAPH.link(a, b), GRAPH.nodes[b]
        pending_ps += link.wire_ps
        if link.bw_gbs is not None:
            flit = flit_cycles(link.bw_gbs)
        if node.kind in ("ucie", "hbm_ctrl", "sram", "m_cpu", "pe"):
            pending_ps += node.overhead_ps
        if node.kind == "ucie":
            continue
        traverse = min(stages, 2)
        head += stages - traverse
        tails.append(head + (flits - 1) * flit)
        passed = traverse + max(1, -(-pending_ps // PERIOD_PS)) + flit - 1
        head, tails, pending_ps = head + passed, [tail + passed for tail in tails], 0
        overhead = -(-node.overhead_ps // PERIOD_PS)
        stages = TOPOLOGY.noc.router_stages if node.kind == "router" else overhead
    return max(tails) + 1


@pytest.mark.parametrize("flits", [1, 32])
def test_a_packet_alone_takes_the_stages_the_wires_and_its_flits(flits: int) -> None:
    pairs = [
        (GRAPH.pe(0, 0), GRAPH.pe(0, 3)),
        (GRAPH.pe(0, 0), GRAPH.hbm(0, 0)),
        (GRAPH.pe(1, 2), GRAPH.hbm(2, 1)),
        (GRAPH.sram(3), GRAPH.pe(0, 1)),
        (GRAPH.m_cpu(0), GRAPH.pe(0, 1)),
    ]
    for source, target in pairs:
        net = CreditedNet()
        net.send(source, target, flits * FLIT_BYTES, at_ps=PERIOD_PS - 1)
        cycles = 1 + alone_cycles(source, target, flits)
        assert net.run() == [(0, cycles * PERIOD_PS)], GRAPH.nodes[source].name
        if flits == 1:
            assert net.fabric.latency_ps(source, target) == (cycles - 1) * PERIOD_PS


def test_flits_leave_their_source_as_their_bytes_come() -> None:
    net, flits, spread = CreditedNet(), 8, 5
    source, target = GRAPH.pe(0, 0), GRAPH.pe(0, 3)
    packet = lone_packet(Kind.WRITE, (0, source), (0, target), flits * FLIT_BYTES)
    # Flit k is complete in cycle k x spread.
    net.engine.at(0, net.fabric.send, packet, source, flits * spread * PERIOD_PS)
    cycles = spread + alone_cycles(source, target, flits, spread)
    assert net.run() == [(0, cycles * PERIOD_PS)]


def test_packets_of_a_source_arrive_in_order_though_channels_overtake() -> None:
    net = CreditedNet()
    target = GRAPH.hbm(0, 3)
    for number in range(40):
        net.send(GRAPH.pe(0, 0), target, 4096 if number % 3 == 0 else 16, tag=number)
        net.send(GRAPH.pe(0, 1), target, 4096, tag=100)
    tags = [tag for tag, _ in net.run() if tag < 100]
    assert tags == list(range(40))
    assert net.fabric.sent == net.fabric.delivered == 80


def test_a_full_endpoint_stops_its_senders_until_it_gives_the_room_back() -> None:
    net = CreditedNet(capacity_bytes=2 * TOPOLOGY.packet_bytes)
    target = GRAPH.hbm(0, 3)
    # From eight sources, one packet each: none can overtake another one of its source.
    for number in range(8):
        cube, pe = divmod(number, 4)
        net.send(GRAPH.pe(cube, pe), target, TOPOLOGY.packet_bytes)
    assert len(net.run()) == 2
    for arrived in range(3, 9):
        net.fabric.release(net.packets.pop(0))
        assert len(net.run()) == arrived


def test_packets_that_overtake_take_no_room_from_those_before_them() -> None:
    net = CreditedNet(capacity_bytes=TOPOLOGY.packet_bytes)
    for number in range(60):
        nbytes = 4096 if number % 7 == 0 else 16
        net.send(GRAPH.pe(0, number % 2), GRAPH.hbm(0, 3), nbytes, tag=number)
    while net.run() and net.packets:
        net.fabric.release(net.packets.pop(0))
    assert len(net.arrived) == 60
    # They have given back what they took: of two packets that need all of the room, one arrives.
    for pe in range(2):
        net.send(GRAPH.pe(0, pe), GRAPH.hbm(0, 3), TOPOLOGY.packet_bytes, net.engine.now_ps)
    assert len(net.run()) == 61


def test_two_streams_of_long_packets_have_half_of_a_link_each() -> None:
    net, packets = CreditedNet(), 32
    for number in range(packets):
        for pe in (0, 2):
            net.send(GRAPH.pe(0, pe), GRAPH.hbm(1, pe), 4096, tag=pe * packets + number)
    arrived = net.run()
    first_half = [tag < packets for tag, _ in arrived[:packets]]
    assert abs(sum(first_half) - packets / 2) <= 1
    # The link between the cubes takes 32 ns for a packet, and is never idle while packets wait.
    assert arrived[-1][1] < 2 * packets * 32_000 * 1.1


def test_links_count_bytes_and_busy_time() -> None:
    net = CreditedNet()
    net.send(GRAPH.pe(0, 0), GRAPH.pe(0, 3), 4096 + 1)
    net.run()
    used = [link for link in net.fabric.busiest() if link.nbytes]
    assert len(used) == len(ROUTES.route(GRAPH.pe(0, 0), GRAPH.pe(0, 3)).stages)
    for link in used:
        assert (link.nbytes, link.busy_ps, link.queued_ps) == (4097, 33 * PERIOD_PS, 0)
        assert link.serialisation_ps(4097) == link.busy_ps


@pytest.mark.parametrize("flits", [1, 32])
def test_a_slow_link_is_busy_for_all_cycles_of_its_flits_in_counters_and_over_time(
    flits: int,
) -> None:
    net, recorded = CreditedNet(), Recorded()
    loads = LinkLoads(recorded.recorder)
    net.fabric.record(loads)
    source, target = GRAPH.m_cpu(0), GRAPH.pe(0, 1)
    net.send(source, target, flits * FLIT_BYTES)
    net.run()
    loads.report()
    over_time = dict[str, int]()
    for row in recorded.rows(LINKS):
        over_time[row["link"]] = over_time.get(row["link"], 0) + row["busy_ps"]
    stages = [
        GRAPH.link(a, b)
        for a, b in pairwise(ROUTES.route(source, target).nodes)
        if GRAPH.link(a, b).bw_gbs is not None
    ]
    busy_ps = {
        f"{GRAPH.nodes[link.source].name}->{GRAPH.nodes[link.target].name}": flits
        * flit_cycles(link.bw_gbs or 0)
        * PERIOD_PS
        for link in stages
    }
    # The link of the M_CPU has 64 GB/s: four cycles a flit. All others take one cycle.
    assert max(busy_ps.values()) == 4 * min(busy_ps.values()) == 4 * flits * PERIOD_PS
    assert {link.name: link.busy_ps for link in net.fabric.busiest() if link.nbytes} == busy_ps
    assert over_time == busy_ps


def test_a_packet_waits_at_its_source_for_the_flits_of_the_packet_before_it() -> None:
    net, flits = CreditedNet(), 32
    for _ in range(2):
        net.send(GRAPH.pe(0, 0), GRAPH.hbm(0, 3), flits * FLIT_BYTES)
    net.run()
    # The first link takes a flit a cycle. Behind it, the second packet has another channel.
    waits_ps = [link.queued_ps for link in net.fabric.busiest() if link.nbytes]
    assert sorted(waits_ps)[-2:] == [0, flits * PERIOD_PS]


def test_flits_behind_a_head_wait_in_turn_and_count_for_no_wait() -> None:
    net, flits, later = CreditedNet(), 32, 8
    target = GRAPH.hbm(0, 3)
    sources = ((GRAPH.pe(0, 0), 0), (GRAPH.pe(0, 1), later))
    for source, cycle in sources:
        net.send(source, target, flits * FLIT_BYTES, at_ps=cycle * PERIOD_PS)
    arrived = net.run()
    # Both share links, so one is late. The head that comes while the other packet has the link is
    # the first in turn, since the last flit was of the other packet.
    alone = [cycle + alone_cycles(source, target, flits) for source, cycle in sources]
    assert arrived[-1][1] > max(alone) * PERIOD_PS
    assert {link.queued_ps for link in net.fabric.busiest()} == {0}
