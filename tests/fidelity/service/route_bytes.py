"""Group r, routes: the bytes on every link.

A transfer leaves its bytes on the links of its route and on no other. The routes are computed here
from the floor plan and the grid of SIPs: columns before rows, round the hole by a shortest path.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise, permutations
from typing import Any

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.systems.sip_links import ONE_CUBE, written
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.sip_grid import SipGrid
from kernbench.oracle.theory.topology_file import TopologyFile


def route_bytes(file: TopologyFile) -> list[Check]:
    """Bytes on the routes of a cube with its hole and without, then between SIPs."""
    hole = dict(ONE_CUBE)
    flat = hole | {"cube.noc.hbm_hole_mm": [0.0, 0.0, 0.0, 0.0]}
    beside = hole | _beside_the_hole(file)
    return [
        _in_cube(file.with_values(hole), "hole", "the hole of the file"),
        _in_cube(file.with_values(beside), "beside", "PEs beside the hole"),
        _in_cube(file.with_values(flat), "flat", "no hole"),
        *(_between_sips(file, kind) for kind in ("mesh_2d_no_wrap", "torus_2d")),
    ]


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
        for path, nbytes in ((plan.path(*ends), data), (plan.path(ends[1], ends[0]), control)):
            for hop in pairwise(path):
                link = "->".join(f"cube0.router.r{row}c{col}" for row, col in hop)
                expected[link] += nbytes
    world = written(file, 1, [(0, a, 0, b, _packets(a, b)) for a, b in pairs])
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
            for sip, onward in pairwise(grid.path(*ends)):
                expected[f"sip {sip} ucie.sip{onward}"] += nbytes
    world = written(file, grid.sips, [(a, 0, b, 1, _packets(a, b)) for a, b in pairs])
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
