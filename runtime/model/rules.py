"""Checks the rules of `topology.yaml` that relate several keys.

Each rule yields `(key path, problem)` for every violation. Rules for a single key are types of the
schema.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from runtime.model.addresses import (
    HBM_WINDOW_BYTES,
    MAX_CUBES,
    MAX_PES_PER_CUBE,
    MAX_SIPS,
    MAX_SRAM_BYTES,
    MAX_TCM_BYTES,
    REGFILE_BYTES,
)
from runtime.model.cube_plan import SIDES
from runtime.model.graph import ChipGraph
from runtime.model.parts.overrides import override_problems
from runtime.model.parts.usable_pes import UsablePes
from runtime.model.router_grid import RouterGrid
from runtime.model.routing import ChipRoutes, NoRouteError
from runtime.model.schema.topology_schema import GIB, MIB, Topology
from runtime.model.sip_fabric import SipFabric, crossing_ps
from runtime.model.tile_layout import WIDEST_BYTES, BufferLayout, RegisterLayout

Problem = tuple[str, str]


def problems(topology: Topology) -> Iterator[Problem]:
    """All violations in a topology that is valid key by key."""
    rules = (
        _sip_count,
        _sip_grid,
        _crossing,
        _cube_mesh,
        _pes,
        _positions,
        _router_mesh,
        _memories,
        _tiles,
        _sizes,
    )
    found = chain.from_iterable(rule(topology) for rule in rules)
    # Names of parts exist where the rest of the file is valid.
    first = next(found, None)
    return _overrides(topology) if first is None else chain((first,), found)


def _overrides(topology: Topology) -> Iterator[Problem]:
    yield from (problems := override_problems(topology))
    if not problems and topology.overrides:
        for sip in range(topology.sips):
            graph = ChipGraph(topology, sip)
            yield from _part_times(graph, sip)
            yield from _reachable(graph, sip)
        sips = SipFabric(topology)
        yield from _sips_reachable(topology, sips)
        if not UsablePes(topology, 0).cubes:
            yield "overrides", "every cube is down in some SIP, and tensors have the same on all"
        for link in sips.links:
            if sips.entry_ps(link.source, link.target) == 0:
                pair = f"sip{link.source} to sip{link.target}"
                yield (
                    "overrides",
                    (
                        f"the crossing from {pair} takes 0 ps; conservative synchronisation needs "
                        "at least 1"
                    ),
                )


def _sips_reachable(topology: Topology, sips: SipFabric) -> Iterator[Problem]:
    if not sips.has_detours:
        return
    for source in range(sips.sips):
        for target in range(sips.sips):
            if source != target and sips.next_hops(source)[target] == source:
                pair = f"sip{source} to sip{target}"
                yield "overrides", f"what is down leaves no route from {pair}"
                return
    if topology.noc.flow_control == "credits" and sips.has_cycles:
        yield (
            "noc.flow_control",
            (
                "links between SIPs are down, and with credits the routes round them could wait "
                "for each other in a circle; unlimited has no such waits"
            ),
        )


def _reachable(graph: ChipGraph, sip: int) -> Iterator[Problem]:
    """Every component that is not down has a route to every other."""
    down, topology = graph.down, graph.topology
    if not down:
        return
    if topology.noc.flow_control == "credits" and down.has_detours:
        yield (
            "noc.flow_control",
            (
                f"links of sip{sip} are down, and credits have no virtual layers for the routes "
                "round them; unlimited does"
            ),
        )
        return
    cubes = [cube for cube in range(topology.cubes) if cube not in down.cubes]
    for cube in cubes:
        if all((cube, pe) in down.pes for pe in range(topology.pes_per_cube)):
            yield "overrides", f"all PEs of sip{sip}.cube{cube} are down; then the cube is"
    if not cubes:
        yield "overrides", f"all cubes of sip{sip} are down"
    try:
        _route_all(graph, cubes)
    except NoRouteError as error:
        ends = f"sip{sip}.{error.source} to sip{sip}.{error.target}"
        yield "overrides", f"what is down leaves no route from {ends}"


def _route_all(graph: ChipGraph, cubes: Sequence[int]) -> None:
    """Compute routes that pass all parts of routes. Raises `NoRouteError`."""
    routes, plan = ChipRoutes(graph), graph.plan
    for cube in cubes:
        links, base = graph.down.router_links(cube), graph.cube_base(cube)
        if links:
            for router in range(plan.routers):
                try:
                    routes.mesh_path(router, 0, links)
                except NoRouteError as error:
                    names = [graph.nodes[base + each].name for each in (router, 0)]
                    raise NoRouteError(*names) from error
        routes.route(graph.io_cpu, graph.m_cpu(cube))
        routes.route(graph.m_cpu(cube), graph.io_cpu)
        for other in cubes:
            routes.route(graph.m_cpu(cube), graph.m_cpu(other))


def _part_times(graph: ChipGraph, sip: int) -> Iterator[Problem]:
    """The rules that relate several keys, for components with values of their own."""
    checked: list[Topology] = [graph.topology]
    for node in graph.nodes:
        own = graph.topology_of(node.index)
        if not any(own is each for each in checked):
            checked.append(own)
            for path, problem in problems(own):
                yield f"overrides: sip{sip}.{node.name}: {path}", problem


def _sip_count(topology: Topology) -> Iterator[Problem]:
    count = topology.sips
    if not 1 <= count <= MAX_SIPS:
        yield "system.sips.count", f"{count} SIPs; an address names 1 to {MAX_SIPS}, 64 racks of 16"


def _sip_grid(topology: Topology) -> Iterator[Problem]:
    sips = topology.system.sips
    if (sips.w is None) != (sips.h is None):
        missing = "w" if sips.w is None else "h"
        yield f"system.sips.{missing}", "w and h are given together, or both are null"
    elif sips.topology == "ring_1d":
        if sips.w is not None:
            yield (
                "system.sips.w",
                "a ring has no columns and rows; w and h belong to 2-D topologies",
            )
    elif sips.w is not None and sips.h is not None and sips.w * sips.h != sips.count:
        yield (
            "system.sips.w",
            f"{sips.w} columns x {sips.h} rows are {sips.w * sips.h} SIPs, count is {sips.count}",
        )
    # Without w and h a grid is square.
    elif sips.w is None and sips.count > 0 and round(sips.count**0.5) ** 2 != sips.count:
        yield (
            "system.sips.count",
            f"{sips.topology} of {sips.count} SIPs: give w and h, or a square count",
        )


def _crossing(topology: Topology) -> Iterator[Problem]:
    # Without lookahead the promise of an LP is its present time, and no peer could pass it.
    if topology.sips > 1 and crossing_ps(topology) == 0:
        yield (
            "ucie.overhead_ns",
            "a crossing between SIPs takes 0 ps; conservative synchronisation needs at least 1",
        )


def _cube_mesh(topology: Topology) -> Iterator[Problem]:
    mesh = topology.sip.cube_mesh
    if topology.cubes > MAX_CUBES:
        yield (
            "sip.cube_mesh",
            f"{mesh.w} x {mesh.h} = {topology.cubes} cubes; an address names {MAX_CUBES}",
        )


def _pes(topology: Topology) -> Iterator[Problem]:
    layout = topology.cube.pe_layout
    if len(set(layout.corners)) < len(layout.corners):
        yield "cube.pe_layout.corners", f"a corner is named twice: {', '.join(layout.corners)}"
    for corner in layout.corners:
        given = len(layout.pos_mm.at(corner))
        if given < layout.pe_per_corner:
            yield (
                f"cube.pe_layout.pos_mm.{corner}",
                f"{given} positions for {layout.pe_per_corner} PEs",
            )
    if topology.pes_per_cube > MAX_PES_PER_CUBE:
        yield (
            "cube.pe_layout.pe_per_corner",
            f"{topology.pes_per_cube} PEs a cube; an address names {MAX_PES_PER_CUBE}",
        )


def _positions(topology: Topology) -> Iterator[Problem]:
    cube = topology.cube
    positions = [(f"cube.ucie_pos_mm.{side}", cube.ucie_pos_mm.at(side)) for side in SIDES]
    positions.append(("cube.m_cpu.pos_mm", cube.m_cpu.pos_mm))
    positions.append(("cube.sram.pos_mm", cube.sram.pos_mm))
    for corner in cube.pe_layout.corners:
        for index, point in enumerate(cube.pe_layout.pos_mm.at(corner)):
            positions.append((f"cube.pe_layout.pos_mm.{corner}[{index}]", point))
    size = f"{cube.size_mm.w} x {cube.size_mm.h} mm"
    for key_path, (x_mm, y_mm) in positions:
        # Negative positions are excluded by the type of the key.
        if x_mm > cube.size_mm.w or y_mm > cube.size_mm.h:
            yield key_path, f"({x_mm}, {y_mm}) mm is outside the cube of {size}"


def _router_mesh(topology: Topology) -> Iterator[Problem]:
    cube = topology.cube
    x0, y0, x1, y1 = cube.noc.hbm_hole_mm
    key_path = "cube.noc.hbm_hole_mm"
    if x0 > x1 or y0 > y1:
        yield (
            key_path,
            f"x0, y0, x1, y1 = {x0}, {y0}, {x1}, {y1}: the first corner lies beyond the second",
        )
    elif x1 > cube.size_mm.w or y1 > cube.size_mm.h:
        yield (
            key_path,
            (
                f"the hole ends at ({x1}, {y1}) mm, outside the cube of "
                f"{cube.size_mm.w} x {cube.size_mm.h} mm"
            ),
        )
    # Two routers without a path between them would have no route.
    elif not RouterGrid(cube.size_mm, cube.noc).connected:
        yield (
            key_path,
            (
                f"the hole removes all routers of the {cube.noc.cols} x {cube.noc.rows} grid "
                "or cuts it in two"
            ),
        )


def _memories(topology: Topology) -> Iterator[Problem]:
    hbm_bytes = topology.pes_per_cube * topology.hbm_slice_bytes
    if hbm_bytes > HBM_WINDOW_BYTES:
        window = f"the HBM window of an address has {HBM_WINDOW_BYTES // GIB} GiB"
        yield (
            "hbm.slice_gib",
            f"{topology.pes_per_cube} slices of {topology.hbm.slice_gib} GiB a cube; {window}",
        )
    if topology.tcm_bytes > MAX_TCM_BYTES:
        yield (
            "pe.tcm_mb",
            f"{topology.pe.tcm_mb} MiB; an address reaches {MAX_TCM_BYTES // MIB} MiB",
        )
    if topology.sram_bytes > MAX_SRAM_BYTES:
        yield (
            "cube.sram_mb",
            f"{topology.cube.sram_mb} MiB; an address reaches {MAX_SRAM_BYTES // MIB} MiB",
        )
    tcm = topology.pe.tcm
    taken = {
        "scheduler_reserved_mb": tcm.scheduler_reserved_mb,
        "kernel_scratch_mb": tcm.kernel_scratch_mb,
        "collective_scratch_mb": tcm.collective_scratch_mb,
        "transfer_scratch_mb": tcm.transfer_scratch_mb,
    }
    if sum(taken.values()) >= topology.pe.tcm_mb:
        parts = " + ".join(f"{name} {megabytes}" for name, megabytes in taken.items())
        yield "pe.tcm_mb", f"{topology.pe.tcm_mb} MiB; {parts} leave nothing for tensors and queues"


def _tiles(topology: Topology) -> Iterator[Problem]:
    tile, count = topology.tile, topology.pe.scheduler.tile_buffers
    registers, buffers = RegisterLayout(0, tile), BufferLayout(0, tile, count)
    if registers.nbytes > REGFILE_BYTES:
        tiles = f"two of each operand and two of the result, of {WIDEST_BYTES} B elements"
        yield (
            "pe.tile",
            (
                f"m {tile.m}, k {tile.k}, n {tile.n}: {tiles}, need {registers.nbytes:,} B of "
                f"registers; there are {REGFILE_BYTES:,}"
            ),
        )
    if buffers.nbytes > topology.scheduler_reserved_bytes:
        tiles = f"{count} tiles of each operand and of the result, of {WIDEST_BYTES} B elements"
        yield (
            "pe.scheduler.tile_buffers",
            (
                f"{tiles}, need {buffers.nbytes:,} B; scheduler_reserved_mb gives "
                f"{topology.scheduler_reserved_bytes:,}"
            ),
        )


def _sizes(topology: Topology) -> Iterator[Problem]:
    burst = topology.hbm.burst_bytes
    # Bursts are striped by address bits.
    if burst & (burst - 1):
        yield "hbm.burst_bytes", f"{burst} is not a power of two"
    banks = topology.hbm.banks
    if banks.row_bytes % burst:
        yield (
            "hbm.banks.row_bytes",
            f"{banks.row_bytes} is no multiple of hbm.burst_bytes, {burst}",
        )
    # A refresh closes all rows; without time to open one again, no access would ever be served.
    closed_ns = banks.t_rfc_ns + banks.t_rcd_ns
    if 0 < banks.t_refi_ns <= closed_ns:
        yield (
            "hbm.banks.t_refi_ns",
            f"{banks.t_refi_ns} ns are no more than t_rfc_ns + t_rcd_ns, {closed_ns} ns",
        )
    if topology.control_bytes > topology.packet_bytes:
        yield (
            "control_bytes",
            f"{topology.control_bytes} is more than packet_bytes, {topology.packet_bytes}",
        )
