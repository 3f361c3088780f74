"""The DMA of a PE without a kernel: outstanding requests, queueing, and its records."""

import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from runtime.core.coordinates import PeCoordinates
from runtime.core.rng import seeded
from runtime.core.simtime import NEVER_PS
from runtime.core.trace import Operand
from runtime.model.topology import parse_topology
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from tests.support.links import join
from tests.support.lone_pe import LonePe
from tests.support.topologies import variant_text

BURST = 256


def random_bytes(nbytes: int) -> bytes:
    return seeded(7).randbytes(nbytes)


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_each_channel_has_one_outstanding_request(channels: int) -> None:
    pe = LonePe(channels)
    for index in range(8):
        pe.read(index * BURST, BURST)
    assert pe.dma.in_flight == 8
    records = pe.run()
    outstanding = [
        sum(one.start_ps <= other.start_ps < one.end_ps for one in records) for other in records
    ]
    assert max(outstanding) == channels
    assert pe.dma.in_flight == 0


def test_the_time_of_a_request_starts_when_it_gets_a_channel() -> None:
    pe = LonePe(channels=1)
    for _ in range(3):
        pe.read(0, BURST)
    records = pe.run()
    assert [record.start_ps for record in records] == [
        0,
        *(record.end_ps for record in records[:-1]),
    ]
    assert len({record.end_ps - record.start_ps for record in records}) == 1
    assert pe.dma.busy_ps == records[-1].end_ps


def test_channels_overlap_the_latency_of_requests_but_not_their_bytes() -> None:
    def took_ps(channels: int) -> int:
        pe = LonePe(channels)
        for index in range(8):
            pe.read(index * 4096, 4096)
        return max(record.end_ps for record in pe.run())

    # 8 x 4096 B at 204.8 GB/s are 160 ns, the round trip of a request is 6.063 + 52 ns.
    assert took_ps(1) == 8 * 78_063
    assert took_ps(8) == 160_000 + 58_063


@pytest.mark.parametrize("outstanding", [1, 2, 3, 4, 16])
def test_the_packets_in_flight_bound_the_bandwidth(outstanding: int) -> None:
    def took_ps(packets: int) -> int:
        pe = LonePe(channels=1, outstanding=outstanding)
        pe.read(0, packets * 4096)
        [record] = pe.run()
        return record.end_ps - record.start_ps

    # In a round trip of 76.063 ns, without the overhead of the DMA, the slice delivers
    # 76.063 / 20 = 3.8 packets.
    per_window_ps = max(76_063, outstanding * 20_000)
    assert took_ps(7 * outstanding) - took_ps(5 * outstanding) == 2 * per_window_ps


def test_a_short_read_beside_a_long_one_waits_for_a_turn() -> None:
    pe = LonePe(channels=2, outstanding=4)
    pe.read(0, 64 * 4096)
    pe.read(1 << 20, 4096)
    short, long = pe.run()
    # The long read has the four places and the next turn: when its first packet has landed, its
    # fifth READ leaves, and one packet later that of the short read.
    assert long.nbytes == 64 * short.nbytes
    assert short.end_ps == (2_000 + 76_063) + 5 * 20_000


def test_a_store_lets_another_channel_and_an_arriving_packet_have_the_port_of_the_tcm() -> None:
    pe = LonePe(channels=2)
    nbytes = 16 * 4096
    pe.dma.write(pe.tcm(0, nbytes), pe.hbm(0, nbytes, pe=1), b"")
    pe.dma.write(pe.tcm(0, 4096), pe.hbm(0, 4096), b"")
    port = pe.pe.tcm.server
    ends: list[int] = []
    # The port serves a packet in 8 ns. Both stores begin at 2 ns and reserve a packet each.
    pe.engine.at(12_000, lambda: ends.append(port.reserve(12_000, 12_000, 4096)[1]))
    pe.run()
    # At 12 ns the third packet is reserved, until 26 ns, and no more.
    assert ends == [34_000]


def test_answers_are_put_together_in_the_order_of_the_block() -> None:
    pe = LonePe(channels=1, outstanding=2)
    data = random_bytes(2 * 4096)
    near = pe.tcm(0, len(data))
    pe.dma.write(near, pe.hbm(0, len(data)), data)
    pe.run()
    answers: list[tuple[Packet, int]] = []
    answer = pe.dma.landing.accept

    def second_first(packet: Packet, tail_ps: int) -> None:
        answers.append((packet, tail_ps))
        if len(answers) == 2:
            for each, _ in reversed(answers):
                answer(each, tail_ps)

    context = pe.pe.context
    context.fabric._endpoints[context.node] = SimpleNamespace(accept=second_first)
    read: list[bytes] = []
    pe.dma.read(pe.hbm(0, len(data)), near).then(lambda back: read.append(back.value))
    pe.run()
    assert read == [data]


@pytest.mark.parametrize("slice_of", [0, 1])
def test_a_read_returns_what_was_written_in_every_slice(slice_of: int) -> None:
    pe = LonePe(channels=4)
    data = random_bytes(10_240)
    far, near = pe.hbm(100, len(data), pe=slice_of), pe.tcm(5000, len(data))
    read: list[bytes] = []
    pe.dma.write(pe.tcm(0, len(data)), far, data).then(
        lambda _: pe.dma.read(far, near).then(lambda back: read.append(back.value))
    )
    pe.run()
    assert read == [data]
    assert pe.pe.tcm.read(near) == data


def test_rows_at_a_pitch_are_gathered_and_scattered() -> None:
    pe = LonePe(channels=4)
    matrix = np.frombuffer(random_bytes(60 * 300), np.int8).reshape(60, 300)
    tile = (slice(7, 47), slice(120, 250))
    rows = {"strides": (300, 1)}
    whole, part, packed = (
        pe.hbm(64, 60, 300),
        pe.hbm(64 + 7 * 300 + 120, 40, 130, **rows),
        pe.tcm(0, 40, 130),
    )
    copy, copied = pe.hbm(100_000, 40, 130, pe=1, strides=(1000, 1)), pe.tcm(20_000, 40, 130)
    pe.dma.write(packed, whole, matrix.tobytes())
    pe.run()
    pe.dma.read(part, packed).then(
        lambda got: pe.dma.write(packed, copy, got.value).then(lambda _: pe.dma.read(copy, copied))
    )
    pe.run()
    # 40 rows of 130 B are two packets: rows are cut where a packet ends.
    assert pe.pe.tcm.read(packed) == pe.pe.tcm.read(copied) == matrix[tile].tobytes()


def test_a_strided_block_takes_as_long_as_its_bytes_on_the_busiest_channel() -> None:
    def took_ps(strides: tuple[int, ...]) -> int:
        pe = LonePe(channels=1)
        pe.dma.read(pe.hbm(0, 32, 128, strides=strides), pe.tcm(0, 32, 128))
        [record] = pe.run()
        return record.end_ps - record.start_ps

    # At 25.6 GB/s a channel, 4096 B over eight channels are 20 ns. Rows of 128 B at a pitch of
    # 2048 B = 8 x 256 B lie on one channel, which needs 160 ns; at 2304 B = 9 x 256 B they lie on
    # all eight.
    without_gaps_ps = took_ps(())
    assert took_ps((2048, 1)) - without_gaps_ps == 160_000 - 20_000
    assert took_ps((2304, 1)) == without_gaps_ps


def test_rows_are_gathered_and_scattered_in_another_sip_too() -> None:
    topology = parse_topology(variant_text(sip__cube_mesh={"w": 1, "h": 1}), "topology.yaml", 2)
    engine, plan = Engine(), chip_spec(topology, data=True, remote_dma=True)
    chips = {sip: Chip(plan, sip, engine, OpLog(None)) for sip in (0, 1)}
    join(chips)
    pe, other = chips[0].pe(PeCoordinates(0, 0, 0)), chips[1].pe(PeCoordinates(1, 0, 3))
    data, tcm, there = random_bytes(60 * 100), pe.tcm.base, other.tcm.base
    far = Operand(plan.addresses.pe_hbm_addr(1, 0, 3, 777), (60, 100), "i8", (250, 1))
    pe.dma.write(Operand(tcm, (60, 100), "i8"), far, data).then(
        lambda _: pe.dma.read(far, Operand(tcm + 9000, (60, 100), "i8")).then(
            lambda _: other.dma.read(far, Operand(there, (60, 100), "i8"))
        )
    )
    engine.run_before(NEVER_PS)
    assert (
        pe.tcm.read(Operand(tcm + 9000, (6000,), "i8"))
        == other.tcm.read(Operand(there, (6000,), "i8"))
        == data
    )


def test_a_copy_between_memories_does_not_stop_in_tcm() -> None:
    pe = LonePe(channels=1)
    data = random_bytes(10_000)
    source, target = pe.hbm(0, 10_000), pe.hbm(0, 10_000, pe=1)
    pe.dma.write(pe.tcm(0, 10_000), source, data)
    pe.run()
    before = pe.pe.tcm.server.nbytes
    done: list[bytes] = []
    pe.dma.copy(source, target, "ipcq_recv").then(lambda copied: done.append(copied.value))
    copied = pe.run()[-1]
    assert pe.pe.tcm.server.nbytes == before
    assert done == [data]
    assert (copied.name, copied.address, copied.inputs) == ("ipcq_recv", target.address, (source,))
    pe.dma.read(target, pe.tcm(50_000, 10_000))
    pe.run()
    assert pe.pe.tcm.read(pe.tcm(50_000, 10_000)) == data


def test_a_copy_streams_so_its_bytes_take_their_time_once() -> None:
    def took_ps(nbytes: int) -> int:
        pe = LonePe(channels=1)
        pe.dma.copy(pe.hbm(0, nbytes), pe.hbm(0, nbytes, pe=1), "ipcq_recv")
        [record] = pe.run()
        return record.end_ps - record.start_ps

    # Sixteen packets more at 204.8 GB/s: the second slice writes while the first one reads on.
    assert took_ps(32 * 4096) - took_ps(16 * 4096) == 16 * 20_000


def test_without_data_a_block_takes_the_same_time() -> None:
    def took_ps(*, data: bool) -> tuple[int, int]:
        pe = LonePe(channels=1, data=data)
        pe.dma.write(
            pe.tcm(0, 9, 1000),
            pe.hbm(50, 9, 1000, strides=(1500, 1)),
            random_bytes(9000) if data else b"",
        )
        [record] = pe.run()
        assert bool(record.checksum) is data
        return record.start_ps, record.end_ps

    assert took_ps(data=True) == took_ps(data=False)


def test_a_load_is_recorded_with_its_source_and_its_result() -> None:
    pe = LonePe(channels=4)
    data = random_bytes(1000)
    near, far = pe.tcm(64, 10, 100), pe.hbm(512, 10, 100, strides=(200, 1))
    pe.dma.write(near, far, data).then(lambda _: pe.dma.read(far, pe.tcm(5000, 10, 100)))
    store, load = pe.run()
    assert (store.engine, store.name, store.cube, store.pe, store.track) == (
        "pe_dma",
        "store",
        0,
        0,
        "cube0.pe0.pe_dma",
    )
    assert (store.inputs, store.start_ps, store.nbytes) == ((near,), 0, 1000)
    assert (store.address, store.shape, store.dtype, store.strides) == (
        far.address,
        (10, 100),
        "i8",
        (200, 1),
    )
    assert (load.name, load.inputs) == ("load", (far,))
    assert (load.address, load.shape, load.dtype, load.strides) == (
        pe.tcm(5000).address,
        (10, 100),
        "i8",
        (),
    )
    assert store.checksum == load.checksum == zlib.crc32(data)
    assert pe.dma.nbytes == 2000


@pytest.mark.parametrize("slice_of", [0, 1])
@pytest.mark.parametrize(("shape", "strides"), [((9, 7, 90), (3000, 300, 1)), ((90, 60), (1, 100))])
def test_planes_of_rows_are_one_request_in_both_directions(
    slice_of: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    pe = LonePe(channels=1)
    data = np.frombuffer(random_bytes(int(np.prod(shape))), np.int8).reshape(shape)
    far, near = pe.hbm(777, *shape, pe=slice_of, strides=strides), pe.tcm(0, *shape)
    pe.dma.write(near, far, data.tobytes()).then(lambda _: pe.dma.read(far, pe.tcm(50_000, *shape)))
    span = sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True)) + 1
    pe.dma.read(pe.hbm(777, span, pe=slice_of), pe.tcm(100_000, span))
    assert len(pe.run()) == 3
    assert pe.pe.tcm.read(pe.tcm(50_000, *shape)) == data.tobytes()
    # The gaps are zero, and each element is where numpy has it.
    expected = np.zeros(span, np.int8)
    np.ndarray(shape, np.int8, expected, strides=strides)[:] = data
    pe.dma.read(pe.hbm(777, span, pe=slice_of), pe.tcm(100_000, span))
    pe.run()
    assert pe.pe.tcm.read(pe.tcm(100_000, span)) == expected.tobytes()


def test_a_block_with_three_pitches_is_refused() -> None:
    pe = LonePe(channels=1)
    with pytest.raises(
        ValueError, match=r"with strides \(999, 100, 10, 1\) is not planes of rows at two pitches"
    ):
        pe.dma.read(pe.hbm(0, 2, 2, 2, 2, strides=(999, 100, 10, 1)), pe.tcm(0, 2, 2, 2, 2))


def test_the_slice_of_another_pe_is_farther_away() -> None:
    def took_ps(slice_of: int) -> int:
        pe = LonePe(channels=1)
        pe.read(0, BURST, slice_of)
        [record] = pe.run()
        return record.end_ps - record.start_ps

    # In each direction: six routers at 1 ns and five links of 2 mm between them. The route to the
    # own slice enters no router.
    assert took_ps(1) - took_ps(0) == 2 * (6_000 + 100)
