"""Links of a fabric without components: FIFO, head-of-line blocking, shared only by their flows."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.simtime import NEVER_PS
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from sip_node.chip.bounds.command_bounds import CommandBounds
from sip_node.chip.bounds.send_bounds import SendBounds
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.pdes.engine import Engine
from tests.support.packets import lone_packet
from tests.support.topologies import small

pytestmark = pytest.mark.fidelity

GRAPH = ChipGraph(small())
ROUTES = ChipRoutes(GRAPH)
ENDPOINTS = [
    node.index for node in GRAPH.nodes if node.kind not in ("router", "ucie", "xbar", "io_noc")
]


class _Sink:
    """Records arrivals: (tag, time of the head, time of the tail)."""

    def __init__(self, engine: Engine, arrived: list[tuple[int, int, int]]) -> None:
        self._engine, self._arrived = engine, arrived

    def accept(self, packet: Packet, tail_ps: int) -> None:
        self._arrived.append((packet.transfer.tag, self._engine.now_ps, tail_ps))


class Net:
    """A fabric with a sink at every component; packets are numbered in the order of `send`."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.fabric = Fabric(
            self.engine, GRAPH, ROUTES, 0, SendBounds({}, CommandBounds(), answers=False), links={}
        )
        self.arrived: list[tuple[int, int, int]] = []
        for node in ENDPOINTS:
            self.fabric.attach(node, _Sink(self.engine, self.arrived))
        self._sent = 0

    def send(self, source: int, target: int, nbytes: int, at_ps: int = 0) -> int:
        """Send a packet, all of whose bytes are at its source at `at_ps`; returns its number."""
        packet = lone_packet(Kind.WRITE, (0, source), (0, target), nbytes, tag=self._sent)
        self.engine.at(at_ps, self.fabric.send, packet, source, at_ps)
        self._sent += 1
        return packet.transfer.tag

    def tails_ps(self) -> dict[int, int]:
        """Run to the end; returns the arrival of the last byte of each packet."""
        self.engine.run_before(NEVER_PS)
        return {tag: tail_ps for tag, _, tail_ps in self.arrived}

    def order(self) -> list[int]:
        self.tails_ps()
        return [tag for tag, _, _ in self.arrived]


def alone_ps(source: int, target: int, nbytes: int) -> int:
    net = Net()
    number = net.send(source, target, nbytes)
    return net.tails_ps()[number]


def closed_form_ps(source: int, target: int, nbytes: int) -> int:
    """Overheads entered + wires + bytes at the narrowest link, from the graph of the route."""
    hops = [GRAPH.link(a, b) for a, b in pairwise(ROUTES.route(source, target).nodes)]
    latency_ps = sum(hop.wire_ps + GRAPH.nodes[hop.target].overhead_ps for hop in hops)
    narrowest = min(
        (Fraction(str(hop.bw_gbs)) for hop in hops if hop.bw_gbs is not None), default=None
    )
    return latency_ps + (0 if narrowest is None else -(-nbytes * 1000 // narrowest))


PE, SRAM = GRAPH.pe, GRAPH.sram


@settings(max_examples=80)
@given(st.sampled_from(ENDPOINTS), st.sampled_from(ENDPOINTS), st.integers(1, 1 << 16))
def test_an_uncontended_packet_takes_the_closed_form_on_every_route(
    source: int, target: int, nbytes: int
) -> None:
    assert alone_ps(source, target, nbytes) == closed_form_ps(source, target, nbytes)


@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=8))
def test_packets_of_one_flow_arrive_in_the_order_in_which_they_were_sent(sizes: list[int]) -> None:
    net = Net()
    numbers = [net.send(PE(0, 0), PE(3, 0), nbytes) for nbytes in sizes]
    assert net.order() == numbers


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=8))
def test_packets_back_to_back_take_one_latency_and_all_their_bytes(sizes: list[int]) -> None:
    net = Net()
    for nbytes in sizes:
        net.send(PE(0, 0), PE(1, 0), nbytes)
    # The UCIe crossing at 128 GB/s is the narrowest link; each packet is rounded up.
    latency_ps = closed_form_ps(PE(0, 0), PE(1, 0), 1) - 8
    assert max(net.tails_ps().values()) == latency_ps + sum(
        -(-nbytes * 1000 // 128) for nbytes in sizes
    )


def test_a_packet_behind_a_blocked_one_waits_even_if_its_own_links_are_free() -> None:
    big, little = 64_000, 256
    net = Net()
    net.send(PE(0, 0), PE(1, 0), big)
    behind = net.send(PE(0, 0), SRAM(0), little)
    # Both leave PE 0 by its one port. The UCIe crossing delays the first packet only later, so the
    # second one waits for its bytes at the port's own 256 GB/s.
    assert net.tails_ps()[behind] == alone_ps(PE(0, 0), SRAM(0), little) + big * 1000 // 256


def test_a_queue_at_a_narrow_link_delays_no_packet_that_does_not_pass_it() -> None:
    net = Net()
    for _ in range(4):
        net.send(PE(0, 0), PE(1, 0), 4096)
    other = net.send(PE(0, 2), SRAM(0), 4096)
    assert net.tails_ps()[other] == alone_ps(PE(0, 2), SRAM(0), 4096)


def test_two_flows_that_share_a_link_share_its_bandwidth() -> None:
    packets, nbytes = 32, 4096
    net = Net()
    flows = {0: PE(0, 0), 1: PE(0, 1)}
    numbers = {flow: [] for flow in flows}
    for _ in range(packets):
        for flow, source in flows.items():
            numbers[flow].append(net.send(source, PE(1, 0), nbytes))
    tails_ps = net.tails_ps()
    at_128_gbs_ps = packets * nbytes * 1000 // 128
    for flow in flows:
        took_ps = tails_ps[numbers[flow][-1]]
        assert took_ps == pytest.approx(2 * at_128_gbs_ps, rel=0.03)


def test_flows_that_share_nothing_do_not_slow_each_other() -> None:
    flows = [
        (PE(0, 0), PE(0, 1)),
        (PE(1, 0), PE(1, 1)),
        (PE(2, 2), SRAM(2)),
        (GRAPH.host, GRAPH.io_cpu),
    ]
    net = Net()
    numbers = [net.send(*flow, 40_000) for flow in flows]
    tails_ps = net.tails_ps()
    assert [tails_ps[number] for number in numbers] == [alone_ps(*flow, 40_000) for flow in flows]


def test_the_two_directions_of_a_link_are_independent() -> None:
    there, back = (PE(0, 0), PE(1, 0)), (PE(1, 0), PE(0, 0))
    net = Net()
    numbers = [net.send(*flow, 100_000) for flow in (there, back)]
    tails_ps = net.tails_ps()
    assert [tails_ps[number] for number in numbers] == [
        alone_ps(*there, 100_000),
        alone_ps(*back, 100_000),
    ]


def test_a_link_is_idle_between_packets_that_come_late_enough() -> None:
    net, gap_ps = Net(), 1_000_000
    late = net.send(PE(0, 0), PE(1, 0), 4096, at_ps=gap_ps)
    net.send(PE(0, 0), PE(1, 0), 4096)
    assert net.tails_ps()[late] == gap_ps + alone_ps(PE(0, 0), PE(1, 0), 4096)


def test_waiting_is_counted_as_queueing_and_serving_as_busy_time() -> None:
    net = Net()
    for _ in range(3):
        net.send(PE(0, 0), PE(0, 1), 2560)
    net.tails_ps()
    port = next(
        server for server in net.fabric.busiest() if server.name == "cube0.pe0->cube0.router.r0c0"
    )
    assert (port.nbytes, port.busy_ps, port.queued_ps) == (3 * 2560, 30_000, 10_000 + 20_000)


def test_every_packet_sent_is_delivered() -> None:
    net = Net()
    for index, source in enumerate(ENDPOINTS):
        net.send(source, ENDPOINTS[-1 - index], 100)
    net.tails_ps()
    assert net.fabric.sent == net.fabric.delivered == len(ENDPOINTS)
