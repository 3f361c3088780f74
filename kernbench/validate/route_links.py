"""Group r, routes: the bytes on every link, and the links between SIPs with credits.

A transfer leaves its bytes on the links of its route and on no other. The routes are computed here
from the floor plan and the grid of SIPs: columns before rows, round the hole by a shortest path.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise, permutations
from typing import Any

from kernbench.simulation import Simulation, simulate
from kernbench.theory.floor_plan import FloorPlan
from kernbench.theory.route_times import RouteTimes
from kernbench.theory.routes import TO_NEXT_SIP
from kernbench.theory.servers import transfer_ps
from kernbench.theory.sip_grid import SipGrid
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.check import Check
from runtime.core.requests import PeDmaMsg
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology
from runtime.torch.rank_state import running_rank

ONE_CUBE = {"sip.cube_mesh": {"w": 1, "h": 1}}
CREDITS = {"noc.flow_control": "credits"}
STREAM = 24
"""Packets of a long stream: more than the buffers of a link between SIPs hold."""

Write = tuple[int, int, int, int, int]
"""SIP and PE of the source, SIP and PE of the slice, packets; all in cube 0."""


def route_links(file: TopologyFile) -> list[Check]:
    """In a cube with its hole and without, then between SIPs."""
    hole = dict(ONE_CUBE)
    flat = hole | {"cube.noc.hbm_hole_mm": [0.0, 0.0, 0.0, 0.0]}
    beside = hole | _beside_the_hole(file)
    return [
        _in_cube(file.with_values(hole), "hole", "the hole of the file"),
        _in_cube(file.with_values(beside), "beside", "PEs beside the hole"),
        _in_cube(file.with_values(flat), "flat", "no hole"),
        *(_between_sips(file, kind) for kind in ("mesh_2d_no_wrap", "torus_2d")),
    ]


def credited_links(file: TopologyFile) -> list[Check]:
    """A crossing alone, the rate of a stream, and two streams on one link."""
    # Channels for all packets of a PE: as transfers of their own, which have a record each.
    ring = {"system.sips.topology": "ring_1d", "pe.dma.channels": 2 * STREAM}
    small = file.with_values(ONE_CUBE | ring)
    found: list[Check] = []
    for mode in ("unlimited", "credits"):
        of_mode = small.with_values({"noc.flow_control": mode})
        found += _forwarded(of_mode, mode)
        found += [check(of_mode, mode) for check in (_streamed, _in_order, _shared)]
    return found


def _beside_the_hole(file: TopologyFile) -> dict[str, Any]:
    """PEs in the rows and columns of the hole, where no route between two sides is straight."""
    x0, y0, x1, y1 = file["cube.noc.hbm_hole_mm"]
    w, h = file["cube.size_mm.w"], file["cube.size_mm.h"]
    # Off the middle, each to another side: then both ways round the hole are equally long.
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    dx, dy = (x1 - x0) / 4, (y1 - y0) / 4
    names = ("NW", "NE", "SW", "SE")
    points = (
        [x0 / 2, y - dy],
        [(x1 + w) / 2, y + dy],
        [x - dx, y0 / 2],
        [x + dx, (y1 + h) / 2],
    )
    layout = {"pe_per_corner": 1, "corners": list(names)}
    positions = {name: [point] for name, point in zip(names, points, strict=True)}
    return {"cube.pe_layout": layout | {"pos_mm": positions}}


def _in_cube(file: TopologyFile, name: str, text: str) -> Check:
    """Every PE writes to the slice of every other PE of its cube."""
    plan, size, control = FloorPlan(file).cube, file["packet_bytes"], file["control_bytes"]
    expected: Counter[str] = Counter()
    pairs = list(permutations(range(file.pes_per_cube), 2))
    for source, target in pairs:
        ends = plan.pe(source)[0], plan.pe(target)[0]
        # The data there, the acknowledgement back.
        data = size * _packets(source, target)
        for path, nbytes in ((plan.path(*ends), data), (plan.path(*ends[::-1]), control)):
            for hop in pairwise(path):
                link = "->".join(f"cube0.router.r{row}c{col}" for row, col in hop)
                expected[link] += nbytes
    world = _written(file, 1, [(0, a, 0, b, _packets(a, b)) for a, b in pairs])
    measured = {
        link.name: link.nbytes
        for link in world.node.chips[0].fabric.busiest()
        if link.name.count("router") == 2
    }
    return _compared(
        f"r.route.{name}", f"every PE to every slice of a cube, {text}", expected, measured
    )


def _between_sips(file: TopologyFile, kind: str) -> Check:
    """PE 0 of every SIP writes to a slice of every other SIP."""
    # Sides of different length, so that no rule may take one for the other.
    columns, rows = 3, 4
    file = file.with_values(
        ONE_CUBE
        | {
            "system.sips.topology": kind,
            "system.sips.count": columns * rows,
            "system.sips.w": columns,
            "system.sips.h": rows,
            "system.sips.fabric": "direct",
        }
    )
    grid = SipGrid(columns, rows, wraps=kind != "mesh_2d_no_wrap")
    size, control = file["packet_bytes"], file["control_bytes"]
    expected: Counter[str] = Counter()
    pairs = list(permutations(range(grid.sips), 2))
    for source, target in pairs:
        data = size * _packets(source, target)
        for ends, nbytes in (((source, target), data), ((target, source), control)):
            for at, onward in pairwise(grid.path(*ends)):
                expected[f"sip {at} ucie.sip{onward}"] += nbytes
    world = _written(file, grid.sips, [(a, 0, b, 1, _packets(a, b)) for a, b in pairs])
    measured = {
        f"sip {sip} {port.name}": port.nbytes
        for sip, chip in world.node.chips.items()
        for port in chip.boundary.ports
    }
    return _compared(f"r.route.{kind}", f"every SIP to every other, {kind}", expected, measured)


def _packets(source: int, target: int) -> int:
    """Not one number for all pairs, which would hide an exchange of rows for columns."""
    return 1 + (3 * source + target) % 4


def _compared(
    name: str, text: str, expected: Mapping[str, int], measured: Mapping[str, int]
) -> Check:
    """The bytes that are on the links where they belong."""
    return Check(
        id=name,
        text=f"{text}: bytes on the {len(expected)} links of their routes",
        formula="columns before rows",
        expected=sum(expected.values()),
        measured=sum(min(nbytes, measured.get(link, 0)) for link, nbytes in expected.items()),
        unit="B",
    )


def _forwarded(file: TopologyFile, mode: str) -> Iterator[Check]:
    """A packet for the SIP after next: from the link of SIP 0 to that of SIP 1."""
    world = _written(file, 4, [(0, 0, 2, 1, 1)])
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
    world = _written(file, 2, [(0, 0, 1, 1, 1)] * STREAM)
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
    world = _written(file, 4, writes)
    sent = [record.address for at, record in world.of("ucie.sip1", "write") if at == 0]
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
    world = _written(file, 2, [(0, 0, 1, 1, 1), (0, far, 1, 2, 1)] * STREAM)
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
        for at, record in world.of(f"ucie.sip{neighbour}", "write")
        if at == sip
    ]


def _written(file: TopologyFile, sips: int, writes: list[Write]) -> Simulation:
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
