"""Group r: links between SIPs, with credits and without."""

from collections.abc import Iterator
from itertools import pairwise

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import TO_NEXT_SIP
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from runtime.core.requests import PeDmaMsg
from runtime.device.rank.rank_state import running_rank
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology

ONE_CUBE = {"sip.cube_mesh": {"w": 1, "h": 1}}
STREAM = 24
"""Packets of a long stream: more than the buffers of a link between SIPs hold."""

Write = tuple[int, int, int, int, int]
"""SIP and PE of the source, SIP and PE of the slice, packets; all in cube 0."""


def credited_links(file: TopologyFile) -> list[Check]:
    """A crossing alone, the rate of a stream, and two streams on one link."""
    # Channels for all packets of a PE: as transfers of their own, which have a record each.
    ring = {"system.sips.topology": "ring_1d", "pe.dma.channels": 2 * STREAM}
    small = file.with_values(ONE_CUBE | ring)
    checks: list[Check] = []
    for mode in ("unlimited", "credits"):
        of_mode = small.with_values({"noc.flow_control": mode})
        checks += _forwarded(of_mode, mode)
        checks += [check(of_mode, mode) for check in (_streamed, _in_order, _shared)]
    return checks


def _forwarded(file: TopologyFile, mode: str) -> Iterator[Check]:
    """A packet for the SIP after next: from the link of SIP 0 to that of SIP 1."""
    world = written(file, 4, [(0, 0, 2, 1, 1)])
    first, second = (_posted(world, sip, sip + 1)[0] for sip in (0, 1))
    acks = [record for sip in range(4) for _, record in world.of(f"ucie.sip{sip}", "ack")]
    yield Check(
        id=f"r.link.{mode}.ack",
        text=f"{mode}: the {len(acks)} crossings of the acknowledgement, each the time on its link",
        formula="bytes / bandwidth of the link",
        expected=2 * transfer_ps(file["control_bytes"], file.number("ucie.bw_gbs")),
        measured=sum(record.end_ps - record.start_ps for record in acks),
        unit="ps",
    )
    yield Check(
        id=f"r.link.{mode}.crossing",
        text=f"{mode}: the head of a packet that a SIP forwards, from link to link",
        formula="port, wire, port, IO NoC",
        expected=RouteTimes(file).latency_ps(TO_NEXT_SIP),
        measured=second[0] - first[0],
        unit="ps",
    )


def _streamed(file: TopologyFile, mode: str) -> Check:
    """A long stream: credits return in time for the full bandwidth."""
    world = written(file, 2, [(0, 0, 1, 1, 1)] * STREAM)
    posted = _posted(world, 0, 1)
    half = len(posted) // 2
    return Check(
        id=f"r.link.{mode}.stream",
        text=f"{mode}: the second half of {STREAM} packets to another SIP",
        formula="bytes / bandwidth of the link",
        expected=half * transfer_ps(file["packet_bytes"], file.number("ucie.bw_gbs")),
        measured=posted[-1][1] - posted[-half - 1][1],
        unit="ps",
        tolerance=0.01,
    )


def _in_order(file: TopologyFile, mode: str) -> Check:
    """A stream that another one holds up on a later link: with credits it waits for room."""
    writes = [(0, 0, 2, 1, 1)] * 2 * STREAM + [(1, 0, 2, 2, 1)] * 2 * STREAM
    world = written(file, 4, writes)
    sent = [record.address for rank, record in world.of("ucie.sip1", "write") if rank == 0]
    return Check(
        id=f"r.link.{mode}.order",
        text=f"{mode}: packets to another SIP right behind those of the lower address",
        formula="a link is FIFO",
        expected=2 * STREAM - 1,
        measured=sum(later - earlier == file["packet_bytes"] for earlier, later in pairwise(sent)),
        unit="packets",
    )


def _shared(file: TopologyFile, mode: str) -> Check:
    """Two PEs of different distance stream to another SIP: each gets half of the link."""
    far = file.pes_per_cube - 1
    world = written(file, 2, [(0, 0, 1, 1, 1), (0, far, 1, 2, 1)] * STREAM)
    slices = [address for *_, address in _posted(world, 0, 1)]
    # Not the begin and the end, where only one of them sends.
    middle = slices[STREAM // 2 : -STREAM // 2]
    return Check(
        id=f"r.link.{mode}.fair",
        text=f"{mode}: two streams on a link, packets of one among {len(middle)} in the middle",
        formula="each has half of the link",
        expected=len(middle) / 2,
        measured=middle.count(min(slices)),
        unit="packets",
        tolerance=0.1,
    )


def _posted(world: Simulation, sip: int, neighbour: int) -> list[tuple[int, int, int]]:
    """(start, end, slice) of the WRITE packets on the link from a SIP to a neighbour."""
    return [
        (record.start_ps, record.end_ps, record.address >> 32)
        for rank, record in world.of(f"ucie.sip{neighbour}", "write")
        if rank == sip
    ]


def written(file: TopologyFile, sips: int, writes: list[Write]) -> Simulation:
    """A run in which PEs write packets to slices, all at once."""
    size = file["packet_bytes"]
    addresses = AddressMap(parse_topology(file.text, "topology", sips))

    def program(rank: int) -> None:
        own = [
            PeDmaMsg(0, pe, "write", addresses.pe_hbm_addr(to, 0, target, number * size), n * size)
            for number, (sip, pe, to, target, n) in enumerate(writes)
            if sip == rank
        ]
        if own:
            device = running_rank().device
            device.wait(device.submit(own, "writes"))

    return simulate(program, sips, topology=file.text, data=False, remote_dma=True)
