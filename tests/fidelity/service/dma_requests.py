"""Group q: the DMA engine: its window, turns, channels, its port of TCM, rows at two pitches."""

from collections.abc import Iterator

from kernbench import tl, torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.transfers.accesses import Accesses, Bank
from kernbench.oracle.checks.transfers.transfers import OneSip, dma_records
from kernbench.oracle.theory.paths.routes import MESH_GBS, PE_GBS, TCM_GBS, XBAR_GBS
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core.requests import PeDmaMsg
from runtime.core.trace import Operand, OpRecord
from runtime.model.placement import ONE_PE
from tests.fidelity.theory.dma import DmaTimes

WINDOWS = (1, 3, 16)
PACKETS = 41
"""Packets of a long read: several fillings of each window, and a part of one."""
QUEUED = (5, 1, 3, 1, 2, 4, 1, 1, 2)
"""Packets of the requests that queue for channels."""
CHANNELS = 3
SLOW_TCM_GBS = 32.0
"""So slow that the port of TCM, and no link, limits a packet."""


def dma(file: TopologyFile) -> list[Check]:
    """All checks of the group; those that need whole rounds of the channels may be left out."""
    checks = [*_windows(file)]
    if file["packet_bytes"] % (file["hbm.num_pcs"] * file["hbm.burst_bytes"]) == 0:
        one_cube = with_wide_links(file)
        checks += [_turn(one_cube), *_channels(one_cube), *_port(one_cube), *_planes(one_cube)]
    return checks


def with_wide_links(file: TopologyFile) -> TopologyFile:
    """One cube, whose links and TCM are faster than an HBM slice."""
    slice_gbs = file["hbm.num_pcs"] * file["hbm.pc_bw_gbs"]
    wide = {
        path: max(file[path], 2.0 * slice_gbs) for path in (MESH_GBS, PE_GBS, TCM_GBS, XBAR_GBS)
    }
    return file.with_values(wide | {"sip.cube_mesh": {"w": 1, "h": 1}})


def _windows(file: TopologyFile) -> Iterator[Check]:
    """Long reads of the own slice, of the last PE in the last cube, and of the next SIP."""
    far = file.cubes - 1, file.pes_per_cube - 1
    banks = {"own": Bank("hbm", 0, 0, 0), "cube": Bank("hbm", 0, *far), "sip": Bank("hbm", 1, 0, 0)}
    nbytes = PACKETS * file["packet_bytes"] - file["packet_bytes"] // 2
    for name, bank in banks.items():
        for window in WINDOWS:
            accesses = Accesses(file.with_values({"pe.dma.outstanding": window}))
            access = accesses.dma((0, 0), bank, nbytes, reads=True)
            yield Check(
                id=f"q.window.{name}.{window}",
                text=f"{access.what}, {window} packets in flight",
                formula="n / min(B, window / round trip)",
                expected=access.expected_ps,
                measured=access.measured_ps,
                unit="ps",
            )


def _turn(file: TopologyFile) -> Check:
    """A read of one packet beside a long one, whose packets fill the window."""
    window = DmaTimes(file).full_window
    file = file.with_values({"pe.dma.outstanding": window, "pe.dma.channels": 2})
    system, packet_bytes = OneSip(file), file["packet_bytes"]
    long_bytes = 8 * window * packet_bytes
    long, short = _in_order(
        system,
        [
            system.read_slice((0, 0), 0, long_bytes),
            system.read_slice((0, 0), 0, packet_bytes, long_bytes),
        ],
    )
    return Check(
        id="q.turn",
        text=f"a read of 1 packet beside one of {8 * window}, {window} in flight: its end",
        formula="its READ after one of the other; one packet at the slice",
        expected=DmaTimes(file).short_read_end_ps(long.start_ps, short.start_ps),
        measured=short.end_ps,
        unit="ps",
    )


def _channels(file: TopologyFile) -> Iterator[Check]:
    """Requests that are submitted together: the oldest gets the channel that is free next."""
    packet_bytes = file["packet_bytes"]
    system = OneSip(file.with_values({"pe.dma.channels": CHANNELS}))
    records = _in_order(
        system,
        [
            system.read_slice((0, 0), 0, packets * packet_bytes, (8 * index) * packet_bytes)
            for index, packets in enumerate(QUEUED)
        ],
    )
    free_ps = sorted(record.end_ps for record in records)
    waited = records[CHANNELS:]
    yield Check(
        id="q.channels.order",
        text=f"{len(QUEUED)} reads on {CHANNELS} channels: those that start when a channel is free",
        formula="request i at the end number i - c",
        expected=len(waited),
        measured=sum(
            record.start_ps == end_ps for record, end_ps in zip(waited, free_ps, strict=False)
        ),
        unit="requests",
    )
    system, alone_ps = OneSip(file.with_values({"pe.dma.channels": 1})), DmaTimes(file)
    reads = [system.read_slice((0, 0), 0, packet_bytes, index * packet_bytes) for index in range(4)]
    yield Check(
        id="q.channels.one",
        text=f"{len(reads)} reads of a packet on one channel: from the first start to the last end",
        formula="k loads, one after the other",
        expected=len(reads) * alone_ps.load_ps(packet_bytes),
        measured=system.span_ps(reads),
        unit="ps",
    )


def _port(file: TopologyFile) -> Iterator[Check]:
    """A load through a slow port of TCM; a write from another PE beside a store out of it."""
    file = file.with_values({TCM_GBS: SLOW_TCM_GBS})
    system, packet_bytes = OneSip(file), file["packet_bytes"]
    [load] = dma_records(system.run([system.read_slice((0, 0), 0, packet_bytes)]))
    yield Check(
        id="q.port.load",
        text=f"a load of a packet, TCM of {SLOW_TCM_GBS:g} GB/s: until the last byte is in TCM",
        formula="overheads + wires + n/B",
        expected=DmaTimes(file).load_ps(packet_bytes),
        measured=load.end_ps - load.start_ps,
        unit="ps",
    )
    if file.pes_per_cube < 2:
        return
    own = system.addresses.pe_hbm_addr(0, 0, 0, 0)
    store = PeDmaMsg(0, 0, "write", own, 64 * packet_bytes)
    records = {
        record.pe: record
        for record in dma_records(system.run([store, system.to_tcm((0, 1), 0, packet_bytes)]))
    }
    yield Check(
        id="q.port.write",
        text="a write of a packet to a TCM beside a store of 64 packets out of it: its end",
        formula="behind the packet that follows the packet in service",
        expected=DmaTimes(file).write_beside_store_ps(1, records[0].start_ps, records[1].start_ps),
        measured=records[1].end_ps,
        unit="ps",
    )


def _planes(file: TopologyFile) -> Iterator[Check]:
    """A load of planes of bursts at two pitches: which channels the planes lie on decides."""
    burst, count = file["hbm.burst_bytes"], file["hbm.num_pcs"]
    rows = file["packet_bytes"] // burst // 2
    period = burst * count
    for name, shift, busiest in (("same", 0, 2 * rows), ("other", burst, rows)):
        if count == 1 and shift:
            continue
        strides = (rows * period + shift, period, 1)
        yield Check(
            id=f"q.planes.{name}",
            text=f"a load of 2 planes of {rows} bursts, each on one channel, {name} for both",
            formula="bursts on a channel / its bandwidth",
            expected=DmaTimes(file).planes_ps(busiest),
            measured=_loaded_ps(file, (2, rows, burst), strides),
            unit="ps",
        )


def _loaded_ps(file: TopologyFile, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The time of a kernel that loads a block of bytes from its own slice."""

    def kernel(x: tl.Pointer) -> None:
        tl.load(x, shape, strides=strides)

    def program(_rank: int) -> int:
        x = torch.empty(shape[0] * strides[0] + strides[1], dtype=torch.int8, dp=ONE_PE)
        launched = torch.launch("planes", kernel, x)
        torch.ahbm.synchronize()
        return launched.pe_exec_ps

    time_ps: int = simulate(program, 1, topology=file.text, data=False).returned[0]
    return time_ps


def _in_order(system: OneSip, requests: list[PeDmaMsg]) -> list[OpRecord]:
    """The records of reads at ascending addresses, in the order of the requests."""
    records = dma_records(system.run(requests))
    # A read has one input, the block in memory.
    return sorted(records, key=lambda record: _source(record).address)


def _source(record: OpRecord) -> Operand:
    [source] = record.inputs
    assert isinstance(source, Operand)
    return source
