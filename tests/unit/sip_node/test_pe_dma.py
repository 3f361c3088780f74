"""The DMA of a PE: outstanding requests, queueing, and what its records say. Driven directly, without a kernel."""

import pytest

from runtime.ccl.config import load_ccl
from runtime.hardware.topology import parse_topology
from runtime.simtime import NEVER_PS
from runtime.trace import OpRecord
from sip_node.chip import Blueprint, Chip
from sip_node.engine import Engine
from sip_node.op_log import OpLog
from tests.support.topologies import variant_text

BURST = 256


class LonePe:
    """PE 0 of a chip with two PEs. `hbm` is the address of an offset in the slice of PE `pe`."""

    def __init__(self, channels: int) -> None:
        text = variant_text(
            sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1, cube__pe_layout__corners=["NW", "NE"],
            pe__dma__channels=channels,
        )  # fmt: skip
        topology = parse_topology(text, "topology.yaml", 1)
        self.engine, self.records = Engine(), list[OpRecord]()
        self.log = OpLog(self.records.extend)
        plan = Blueprint.of(topology, load_ccl(), data=True)
        self.addresses = plan.addresses
        self.dma = Chip(plan, 0, self.engine, self.log, lambda message: None).pes[0].dma

    def hbm(self, offset: int, pe: int = 0) -> int:
        return self.addresses.pe_hbm_addr(0, 0, pe, offset)

    def run(self) -> list[OpRecord]:
        """The records, in the order of completion."""
        self.engine.run_before(NEVER_PS)
        self.log.flush()
        return self.records


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_so_many_requests_are_outstanding_as_there_are_channels(channels: int) -> None:
    pe = LonePe(channels)
    for index in range(8):
        pe.dma.read(pe.hbm(index * BURST), BURST)
    assert pe.dma.in_flight == 8
    records = pe.run()
    at_work = [sum(one.start_ps <= other.start_ps < one.end_ps for one in records) for other in records]
    assert max(at_work) == channels
    assert pe.dma.in_flight == 0


def test_the_time_of_a_request_starts_when_its_channel_is_its_own() -> None:
    pe = LonePe(channels=1)
    for _ in range(3):
        pe.dma.read(pe.hbm(0), BURST)
    records = pe.run()
    assert [record.start_ps for record in records] == [0, *(record.end_ps for record in records[:-1])]
    assert len({record.end_ps - record.start_ps for record in records}) == 1
    assert pe.dma.busy_ps == records[-1].end_ps


def test_channels_overlap_the_latency_of_requests_but_not_their_bytes() -> None:
    def took_ps(channels: int) -> int:
        pe = LonePe(channels)
        for index in range(8):
            pe.dma.read(pe.hbm(index * 4096), 4096)
        return max(record.end_ps for record in pe.run())

    # 8 x 4096 B at 204.8 GB/s are 160 ns, the way there and back is 6.063 ns.
    assert took_ps(1) == 8 * 26_063
    assert 160_000 < took_ps(8) <= 160_000 + 8_000


def test_what_was_written_is_read_back_wherever_it_lies() -> None:
    pe = LonePe(channels=4)
    data = bytes(range(256)) * 40
    for place in (0, 1):
        pe.dma.write(pe.hbm(100, place), len(data), data).then(
            lambda _, place=place: pe.dma.read(pe.hbm(100, place), len(data), f"back from {place}").then(
                lambda back: read.append(back.value)
            )
        )
    read: list[bytes] = []
    pe.run()
    assert read == [data, data]


def test_a_record_says_what_moved_where_and_when() -> None:
    pe = LonePe(channels=4)
    pe.dma.write(pe.hbm(512), 1000, bytes(1000))
    [record] = pe.run()
    assert (record.engine, record.name, record.cube, record.pe) == ("pe_dma", "store", 0, 0)
    assert (record.address, record.nbytes, record.start_ps) == (pe.hbm(512), 1000, 0)
    assert record.track == "cube0.pe0.pe_dma"
    assert pe.dma.nbytes == 1000


def test_the_slice_of_another_pe_is_farther_away() -> None:
    def took_ps(place: int) -> int:
        pe = LonePe(channels=1)
        pe.dma.read(pe.hbm(0, place), BURST)
        [record] = pe.run()
        return record.end_ps - record.start_ps

    # There and back: five steps of 2 mm between six routers at 1 ns, which the way to the own slice does not enter.
    assert took_ps(1) - took_ps(0) == 2 * (6_000 + 100)
