"""Group h: the order of service where accesses to one memory meet, and changes of direction."""

from collections.abc import Iterator, Sequence

from kernbench.oracle.checks.check import Check, Relation
from kernbench.oracle.checks.transfers.transfers import TOLERANCE, OneSip, dma_records
from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.paths.routes import MESH_GBS, PE_GBS, SRAM_GBS, TCM_GBS, XBAR_GBS
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.requests import MemoryReadMsg, PeDmaMsg, Request
from runtime.core.trace import OpRecord
from tests.fidelity.theory.memory_turns import MemoryTurns

READERS = 4
PACKETS = 8
PENALTY_NS = 7.0
LONG_BYTES, SHORT_BYTES = 1 << 19, 1 << 17
"""Bytes of a read by a PE, and of one by the host that meets it."""
PORT_GBS = 64.0
HOST_LINKS = tuple(f"sip.io_chiplet.{end}.bw_gbs" for end in ("pcie_ep", "io_cpu", "noc"))
HOST_TOLERANCE = 0.07
"""Two of the 32 packets of the host, at the ends."""


def memory_turns(file: TopologyFile) -> list[Check]:
    """All checks of the order of service; none for a cube with fewer PEs than they need."""
    if file.pes_per_cube < READERS:
        return []
    file = _wide(file)
    return [*_equal_readers(file), *_passing(file), *_penalty(file), *_ports(file)]


def _wide(file: TopologyFile) -> TopologyFile:
    """One cube, links at least as wide as a slice, packets of whole rounds of its channels."""
    gbs = float(slice_gbs(file))
    values = {key: max(file[key], gbs) for key in (MESH_GBS, PE_GBS, TCM_GBS, XBAR_GBS)}
    round_bytes = file["hbm.burst_bytes"] * file["hbm.num_pcs"]
    packet_bytes = max(file["packet_bytes"] // round_bytes, 1) * round_bytes
    others = {
        "sip.cube_mesh": {"w": 1, "h": 1},
        "packet_bytes": packet_bytes,
        "cube.hbm_ctrl.switch_penalty_ns": 0.0,
    }
    return file.with_values(values | others)


def _records(system: OneSip, requests: Sequence[Request]) -> dict[int, OpRecord]:
    """The record of the last access of each PE, by PE."""
    return {record.pe: record for record in dma_records(system.run(requests))}


def _span_ps(record: OpRecord) -> int:
    return record.end_ps - record.start_ps


def _exact(check_id: str, text: str, formula: str, expected: int, measured: int) -> Check:
    return Check(
        id=check_id,
        text=text,
        formula=formula,
        expected=expected,
        measured=measured,
        unit="ps",
    )


def _equal_readers(file: TopologyFile) -> Iterator[Check]:
    """Long reads end together; single packets are served in the order of arrival."""
    system, turns = OneSip(file), MemoryTurns(file)
    for name, packets in (("equal", PACKETS), ("fifo", 1)):
        nbytes = packets * file["packet_bytes"]
        records = _records(system, [system.read_slice((0, pe), 0, nbytes) for pe in range(READERS)])
        starts_ps = {pe: record.start_ps for pe, record in records.items()}
        for pe, expected_ps in turns.reads_end_ps(starts_ps, packets).items():
            yield _exact(
                f"h.turns.{name}.{pe}",
                f"{READERS} PEs read {packets} packets each of one slice: time of PE {pe}",
                "a + ((m-1) k + i + 1) S",
                expected_ps - starts_ps[pe],
                _span_ps(records[pe]),
            )


def _passing(file: TopologyFile) -> Iterator[Check]:
    """A burst behind a long read, and a burst beside accesses to another channel."""
    system, turns, burst = OneSip(file), MemoryTurns(file), file["hbm.burst_bytes"]
    burst_ps = transfer_ps(burst, slice_gbs(file) / file["hbm.num_pcs"])
    long = system.read_slice((0, 0), 0, PACKETS * file["packet_bytes"])
    records = _records(system, [long, system.read_slice((0, 1), 0, burst)])
    served_ps = records[0].start_ps + turns.requested_ps(0) + turns.packet_ps + burst_ps
    yield _exact(
        "h.turns.short",
        "a burst behind a long read waits for the packet in service",
        "a + S + burst",
        served_ps + turns.returned_ps(1) - records[1].start_ps,
        _span_ps(records[1]),
    )
    busy = OneSip(file.with_values({"pe.dma.channels": PACKETS}))
    stride = burst * file["hbm.num_pcs"]
    others: list[Request] = [
        busy.read_slice((0, 0), 0, burst, stride * index) for index in range(PACKETS)
    ]
    records = _records(busy, [*others, busy.read_slice((0, 1), 0, burst, burst)])
    # On the link from the slice it may find the answer of another channel.
    link_ps = transfer_ps(burst, file.number(XBAR_GBS))
    yield Check(
        id="h.turns.idle",
        text="a burst of an idle channel passes those that wait for another",
        formula="alone + a burst on the link",
        expected=turns.requested_ps(1) + burst_ps + turns.returned_ps(1) + link_ps,
        measured=_span_ps(records[1]),
        unit="ps",
        relation=Relation.AT_MOST,
    )
    every = dma_records(busy.run([*others, busy.read_slice((0, 1), 0, 2 * burst)]))
    first_ps = min(record.start_ps for record in every) + turns.requested_ps(0)
    [both] = [record for record in every if record.pe == 1]
    yield _exact(
        "h.turns.both",
        "two bursts, of that channel and of an idle one: behind those that wait",
        "a + (accesses + 1) burst",
        first_ps + (PACKETS + 1) * burst_ps + turns.returned_ps(1) - both.start_ps,
        _span_ps(both),
    )


def _penalty(file: TopologyFile) -> Iterator[Check]:
    """A read and two writes that follow it; then reads and writes in turn."""
    plain = OneSip(file)
    # Without latency: the data of the read would delay the acknowledgements on their link.
    file = file.with_values({"cube.hbm_ctrl.latency_ns": 0.0})
    system = OneSip(file.with_values({"cube.hbm_ctrl.switch_penalty_ns": PENALTY_NS}))
    turns, packet, penalty_ps = MemoryTurns(file), file["packet_bytes"], int(PENALTY_NS * 1000)

    def to_slice(pe: int, nbytes: int) -> PeDmaMsg:
        return PeDmaMsg(0, pe, "write", plain.addresses.pe_hbm_addr(0, 0, 0, 1 << 20), nbytes)

    records = _records(
        system, [system.read_slice((0, 0), 0, packet), to_slice(1, packet), to_slice(2, packet)]
    )
    starts_ps = {pe: records[pe].start_ps for pe in (1, 2)}
    ends_ps = turns.writes_end_ps(records[0].start_ps, starts_ps, penalty_ps)
    for name, (pe, end_ps) in zip(("turn", "run"), ends_ps.items(), strict=True):
        yield _exact(
            f"h.penalty.{name}",
            f"{'first' if name == 'turn' else 'second'} write after a read of the same channels",
            "a + S + penalty + writes x S",
            end_ps - records[pe].start_ps,
            _span_ps(records[pe]),
        )
    yield Check(
        id="h.penalty.alternate",
        text="a PE reads and another one writes one slice, packet by packet in turn",
        formula="packet / (S + penalty)",
        expected=packet * 1000 / (turns.packet_ps + penalty_ps),
        measured=system.rate_gbs(
            lambda nbytes: [system.read_slice((0, 0), 0, nbytes), to_slice(1, nbytes)]
        ),
        tolerance=TOLERANCE,
        unit="GB/s",
    )


def _ports(file: TopologyFile) -> Iterator[Check]:
    """A long read of the host from a TCM beside that of a PE; reads and writes of an SRAM."""
    system = OneSip(file.with_values(dict.fromkeys(HOST_LINKS, 1000.0) | {TCM_GBS: PORT_GBS}))
    tcm = system.addresses.pe_tcm_addr(0, 0, 0, 0)
    host, other = MemoryReadMsg(tcm, SHORT_BYTES), PeDmaMsg(0, 1, "read", tcm, LONG_BYTES)
    spans_ps: list[int] = []
    for requests in ([host], [host, other]):
        records = [record for _, record in system.run(requests).of("host")]
        [record] = [each for each in records if each.nbytes == SHORT_BYTES]
        spans_ps.append(_span_ps(record))
    yield Check(
        id="h.turns.host",
        text="the host reads a TCM that a PE reads, packet by packet in turn: time more than alone",
        formula="n / B",
        expected=SHORT_BYTES * 1000 / PORT_GBS,
        measured=spans_ps[1] - spans_ps[0],
        tolerance=HOST_TOLERANCE,
        unit="ps",
    )
    # As fast as a PE sends: on a narrower link, requests to read would wait behind what is written.
    sent_gbs = min(file[key] for key in (MESH_GBS, PE_GBS, TCM_GBS))
    file = file.with_values({SRAM_GBS: sent_gbs})
    system = OneSip(file)
    sram = system.addresses.cube_sram_addr(0, 0, 0)
    access = PeDmaMsg(0, 0, "read", sram, SHORT_BYTES)
    writes = PeDmaMsg(0, 1, "write", sram, SHORT_BYTES)
    alone, beside = (_records(system, each)[0] for each in ([access], [access, writes]))
    yield Check(
        id="h.turns.sram",
        text="a PE reads an SRAM, to which another one writes meanwhile",
        formula="alone + 4 packets",
        expected=_span_ps(alone) + transfer_ps(4 * file["packet_bytes"], file.number(SRAM_GBS)),
        measured=_span_ps(beside),
        unit="ps",
        relation=Relation.AT_MOST,
    )
