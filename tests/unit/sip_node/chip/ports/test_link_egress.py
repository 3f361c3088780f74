"""The sending end of a link between SIPs: one port, cut-through, consecutive numbers."""

import pytest

from runtime.core.simtime import NEVER_PS
from runtime.model.jitter import Jitter
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.ports.link_egress import LinkEgress
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from tests.support.links import CalledEnd
from tests.support.packets import lone_packet
from tests.support.topologies import variant

LATENCY_PS = 500


def test_packets_leave_at_the_bandwidth_of_the_port_and_arrive_a_latency_later() -> None:
    engine, crossed = Engine(), list[tuple[int, ...]]()
    egress = LinkEgress(engine, OpLog(None), 3, Server("port", 1.0), LATENCY_PS)
    egress.connect(CalledEnd(lambda *crossing: crossed.append(crossing[:4])))
    packet = lone_packet(Kind.ACK, (3, 0), (1, 0), 10)
    # 10 B at 1 GB/s are 10 ns; the tail of the second comes later than that.
    engine.at(100, egress.cross, packet, 100)
    engine.at(100, egress.cross, packet, 30_000)
    engine.at(200, egress.notify, packet)
    engine.run_before(NEVER_PS)
    assert crossed == [
        (100 + LATENCY_PS, 3, 0, 10_100 + LATENCY_PS),
        (10_100 + LATENCY_PS, 3, 1, 30_000 + LATENCY_PS),
        (200 + LATENCY_PS, 3, 2, 200 + LATENCY_PS),
    ]
    assert egress.sent == 3


def test_packets_come_to_the_port_later_by_their_jitter_and_stay_in_order() -> None:
    engine, log, crossed = Engine(), OpLog(None), list[tuple[int, ...]]()
    records = log.begin_recording()
    egress = LinkEgress(
        engine, log, 3, Server("port", 1.0), LATENCY_PS, Jitter(variant(), "port", 30.0)
    )
    egress.connect(CalledEnd(lambda *crossing: crossed.append(crossing[:4])))
    for _ in range(40):
        engine.at(100, egress.cross, lone_packet(Kind.ACK, (3, 0), (1, 0), 4), 100)
    engine.run_before(NEVER_PS)
    delays = Jitter(variant(), "port", 30.0)
    free_ps, expected, late = 0, list[tuple[int, int]](), list[tuple[int, int]]()
    for _ in range(40):
        # A packet of 4 B at 1 GB/s, behind those before it.
        ready_ps, late_ps = max(100, free_ps), 100 + delays.next_ps()
        start_ps = max(ready_ps, late_ps)
        free_ps = start_ps + 4000
        expected.append((start_ps + LATENCY_PS, free_ps + LATENCY_PS))
        if late_ps > ready_ps:
            late.append((ready_ps, late_ps))
    assert [(head_ps, tail_ps) for head_ps, _, _, tail_ps in crossed] == expected
    recorded = [each for each in records if each.engine == "jitter"]
    assert [(each.name, each.start_ps, each.end_ps) for each in recorded] == [
        ("port", *span) for span in late
    ]
    assert late


def test_a_link_that_is_not_connected_takes_no_packet() -> None:
    egress = LinkEgress(Engine(), OpLog(None), 3, Server("port", 1.0), LATENCY_PS)
    with pytest.raises(AssertionError, match="a link that leads nowhere"):
        egress.notify(lone_packet(Kind.ACK, (3, 0), (1, 0), 10))


def test_a_transfer_has_one_record_which_is_added_with_its_last_packet() -> None:
    engine, log = Engine(), OpLog(None)
    egress = LinkEgress(engine, log, 3, Server("port", 1.0), LATENCY_PS)
    egress.connect(CalledEnd(lambda *_crossing: None))
    records = log.begin_recording()
    write = FabricTransfer(Kind.WRITE, 3, 0, 1, 0, address=640, total=25)
    packets = [Packet(write, 0, 10, False), Packet(write, 10, 10, False), Packet(write, 20, 5)]
    engine.at(100, egress.cross, packets[0], 100)
    engine.at(100, egress.cross, lone_packet(Kind.ACK, (3, 0), (1, 0), 4, address=77), 100)
    for packet in packets[1:]:
        engine.at(50_000, egress.cross, packet, 50_000)
    engine.run_before(40_000)
    assert [record.name for record in records] == ["ack"]
    engine.run_before(NEVER_PS)
    assert [
        (each.name, each.start_ps, each.end_ps, each.address, each.nbytes) for each in records
    ] == [
        # In between the port has served another one, and has been idle.
        ("ack", 10_100, 14_100, 77, 4),
        ("write", 100, 65_000, 640, 25),
    ]
