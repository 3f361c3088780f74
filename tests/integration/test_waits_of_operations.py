"""Waits of operations in cases computed by hand: channels, links, memories, ports."""

from typing import Any

import pytest

from runtime.core.coordinates import PeCoordinates
from runtime.core.run_tables import LEAST_BIN_PS, LINKS, OPS
from runtime.core.simtime import NEVER_PS, serialisation_ps
from runtime.core.trace import Operand
from runtime.model.topology import parse_topology
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.ports.link_egress import LinkEgress
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.records.packet_train import PacketTrain, QueueTimes
from sip_node.pdes.engine import Engine
from tests.support.links import CalledEnd, join
from tests.support.lone_pe import LonePe
from tests.support.packets import lone_packet
from tests.support.recorded import Recorded
from tests.support.topologies import variant_text

BURST = 256
CONTROL_PS = serialisation_ps(16, 256)
"""A descriptor of 16 B on the link of a PE, which has 256 GB/s."""
BURST_PS = serialisation_ps(BURST, 25.6)
"""256 B on a pseudo channel."""


class Sink:
    """An endpoint that takes all packets."""

    def accept(self, packet: Packet, tail_ps: int) -> None:
        pass


def recorded_pe(channels: int) -> tuple[LonePe, Recorded]:
    recorded = Recorded()
    return LonePe(channels, recorder=recorded.recorder), recorded


def ops(pe: LonePe, recorded: Recorded) -> list[dict[str, Any]]:
    """The rows of a run to its end, which are those of the op log in its order."""
    records, rows = pe.run(), recorded.rows(OPS)
    for record, row in zip(records, rows, strict=True):
        for name in ("engine", "name", "start_ps", "end_ps", "cube", "pe", "address", "nbytes"):
            assert row[name] == getattr(record, name)
    return rows


def waits(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["cause"], row["link_ps"], row["link"], row["memory_ps"]


@pytest.mark.parametrize("nbytes", [16, BURST, 20_000])
def test_a_transfer_alone_waits_for_nothing(nbytes: int) -> None:
    pe, recorded = recorded_pe(1)
    near, far = pe.tcm(0, nbytes), pe.hbm(0, nbytes, pe=1)
    for begin in (
        lambda: pe.dma.read(far, near),
        lambda: pe.dma.write(near, far, bytes(nbytes)),
        lambda: pe.dma.copy(far, pe.hbm(1 << 20, nbytes), "ipcq_recv"),
        lambda: pe.dma.gather([far], near, 8, None),
    ):
        begin()
        pe.run()
    assert [waits(row) for row in ops(pe, recorded)] == [("", 0, "", 0)] * 4


def test_requests_wait_for_the_channel_of_those_before_them() -> None:
    pe, recorded = recorded_pe(1)
    for _ in range(3):
        pe.read(0, BURST)
    rows = ops(pe, recorded)
    alone_ps = rows[0]["end_ps"]
    assert [row["requested_ps"] for row in rows] == [0, 0, 0]
    assert [row["start_ps"] for row in rows] == [0, alone_ps, 2 * alone_ps]
    assert [row["cause"] for row in rows] == ["", "channel", "channel"]
    assert rows[0]["read_address"] == pe.hbm(0, 1).address


def test_two_requests_for_one_bank_wait_at_the_link_and_then_for_the_rest_at_the_memory() -> None:
    pe, recorded = recorded_pe(2)
    pe.read(0, BURST)
    pe.read(0, BURST)
    first, second = ops(pe, recorded)
    assert waits(first) == ("", 0, "", 0)
    at_memory_ps = BURST_PS - CONTROL_PS
    assert waits(second) == ("memory", CONTROL_PS, "cube0.pe0->cube0.pe0.xbar", at_memory_ps)
    # Its descriptor and its bytes are late for these waits, and for no others.
    assert second["end_ps"] - first["end_ps"] == CONTROL_PS + at_memory_ps


def test_the_load_of_a_channel_has_the_wait_in_the_queue_of_its_memory() -> None:
    pe, recorded = recorded_pe(2)
    pe.read(0, BURST)
    pe.read(0, BURST)
    pe.run()
    assert pe.chip.loads is not None
    pe.chip.loads.report()
    # As above: the second access waits for the service of the first one, less its own later begin.
    rows = [row for row in recorded.rows(LINKS) if row["kind"] == "memory"]
    assert {row["link"].rpartition(".")[2] for row in rows} == {"pc0"}
    assert sum(row["queued_ps"] for row in rows) == BURST_PS - CONTROL_PS
    assert sum(row["busy_ps"] for row in rows) == 2 * BURST_PS


def test_a_request_is_late_for_as_long_as_it_waits_at_the_memory_of_another_pe() -> None:
    def end_ps(*, shared: bool) -> tuple[int, dict[str, Any]]:
        pe, recorded = recorded_pe(1)
        other = pe.chip.pe(PeCoordinates(0, 0, 1))
        if shared:
            pe.read(0, BURST)
        near = Operand(pe.addresses.pe_tcm_addr(0, 0, 1, 0), (BURST,), "i8")
        other.dma.read(pe.hbm(0, BURST), near)
        row = ops(pe, recorded)[-1]
        return row["end_ps"], row

    alone_ps, _ = end_ps(shared=False)
    late_ps, row = end_ps(shared=True)
    assert late_ps > alone_ps
    assert waits(row) == ("memory", 0, "", late_ps - alone_ps)


def test_stores_wait_for_each_other_at_the_port_of_the_tcm() -> None:
    pe, recorded = recorded_pe(2)
    for offset in (0, 1):
        pe.dma.write(pe.tcm(0, 1024), pe.hbm(0, 1024, pe=offset), bytes(1024))
    first, second = ops(pe, recorded)
    # 1,024 B at 512 GB/s.
    assert (first["memory_ps"], second["memory_ps"]) == (0, 2_000)


@pytest.mark.parametrize("packets", [1, 2, 7])
def test_two_flows_on_one_link_wait_for_each_other_and_not_for_their_own(packets: int) -> None:
    pe, _ = recorded_pe(1)
    fabric, nodes = pe.chip.fabric, {node.name: node for node in pe.chip._graph.nodes}
    source, target = nodes["cube0.pe0"].index, nodes["cube0.pe1"].index
    pe.chip.pe(PeCoordinates(0, 0, 1))
    fabric.replace(target, Sink())
    flows = [
        FabricTransfer(kind=Kind.ACK, source_sip=0, source_node=source, sip=0, node=target, tag=tag)
        for tag in (1, 2)
    ]
    for number in range(packets):
        for flow in flows:
            last = number == packets - 1
            pe.engine.at(0, fabric.send, Packet(flow, 0, 4096, last), source, 0)
    pe.engine.run_before(NEVER_PS)
    times = [flow.train.times for flow in flows if flow.train is not None]
    # Packet k of A leaves after k of B, that of B after k + 1 of A; behind, they are in a row.
    packet_ps = serialisation_ps(4096, 256)
    assert [each.link_ps for each in times] == [(packets - 1) * packet_ps, packets * packet_ps]
    assert times[1].link == "cube0.pe0->cube0.router.r0c0"


def test_a_transfer_between_sips_reports_the_wait_for_the_port_with_all_before_it() -> None:
    recorded, engine = Recorded(), Engine()
    log = OpLog(None, recorder=recorded.recorder)
    egress = LinkEgress(engine, log, 3, Server("port", 1.0), 500)
    egress.connect(CalledEnd(lambda *_crossing: None))
    packets = [lone_packet(Kind.ACK, (3, 0), (1, 0), 10) for _ in range(2)]
    for packet in packets:
        packet.enter(PacketTrain(QueueTimes()))
    packets[1].queued(4_000, "before")
    assert packets[1].train is not None
    packets[1].train.times.at_memory(77)
    for packet in packets:
        engine.at(100, egress.cross, packet, 100)
    engine.run_before(NEVER_PS)
    log.flush()
    first, second = recorded.rows(OPS)
    # 10 B at 1 GB/s.
    assert waits(first) == ("", 0, "", 0)
    assert (second["requested_ps"], second["start_ps"]) == (100, 10_100)
    assert waits(second) == ("link", 14_000, "port", 77)


def remote_writes(recorders: list[Recorded]) -> list[Chip]:
    """Two SIPs; both PEs of SIP 0 write to SIP 1, which writes back."""
    topology = parse_topology(
        variant_text(
            sip__cube_mesh={"w": 1, "h": 1},
            cube__pe_layout__pe_per_corner=1,
            cube__pe_layout__corners=["NW", "NE"],
        ),
        "topology.yaml",
        2,
    )
    engine, plan = Engine(), chip_spec(topology, data=False, remote_dma=True)
    chips = {
        sip: Chip(plan, sip, engine, OpLog(None, recorder=each.recorder))
        for sip, each in enumerate(recorders)
    }
    join(chips)
    for sip, pe in ((0, 0), (0, 1), (1, 0)):
        dma, there = chips[sip].pe(PeCoordinates(sip, 0, pe)).dma, 1 - sip
        near = Operand(plan.addresses.pe_tcm_addr(sip, 0, pe, 0), (8192,), "i8")
        dma.write(near, Operand(plan.addresses.pe_hbm_addr(there, 0, 0, 0), (8192,), "i8"), b"")
        dma.read(Operand(plan.addresses.pe_hbm_addr(there, 0, 1, 0), (8192,), "i8"), near)
    engine.run_before(NEVER_PS)
    for chip in chips.values():
        assert not chip.broken_law()
        chip.log.flush()
        assert chip.loads is not None
        chip.loads.report()
    return list(chips.values())


def test_what_packets_queue_before_they_cross_is_reported_where_they_leave() -> None:
    recorders = [Recorded(), Recorded()]
    remote_writes(recorders)
    rows = [each.rows(OPS) for each in recorders]
    crossings = [row for row in rows[0] if row["engine"].startswith("ucie")]
    assert {row["name"] for row in crossings} == {"write", "read", "data", "ack"}
    # The writes of two PEs meet before the port: the later one waits for the whole of the other.
    writes = sorted(row["link_ps"] for row in crossings if row["name"] == "write")
    assert writes[1] >= serialisation_ps(8192, 256)
    # No row of a SIP names a link of the other: its UCIe port has the name of the neighbour.
    names = [{row["link"] for row in rows[sip] if row["link"].startswith("ucie")} for sip in (0, 1)]
    assert names[0] <= {"ucie.sip1"}
    assert names[1] <= {"ucie.sip0"}


def test_loads_over_time_add_up_to_the_counters() -> None:
    recorders = [Recorded(), Recorded()]
    chips = remote_writes(recorders)
    for chip, recorded in zip(chips, recorders, strict=True):
        rows, counters = recorded.rows(LINKS), chip.counters()
        links = [row for row in rows if row["kind"] == "link"]
        assert sum(row["nbytes"] for row in links) == counters["link_bytes"]
        assert sum(row["queued_ps"] for row in links) == counters["link_queued_ps"]
        assert (
            sum(row["nbytes"] for row in rows if row["link"].startswith("ucie."))
            == (counters["sip_bytes_sent"])
        )
        for server in (*chip.fabric.busiest(), *chip.boundary.ports):
            own = [row for row in rows if row["link"] == server.name]
            assert sum(row["busy_ps"] for row in own) == server.busy_ps
        assert all(row["busy_ps"] <= LEAST_BIN_PS for row in rows)
        assert {row["kind"] for row in rows} == {"link", "memory", "port"}
