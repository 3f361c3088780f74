"""Group c: flows without a common link, flows to one destination, PEs on own and on one slice."""

from collections.abc import Iterator

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.transfers.transfers import FLOW_BYTES, TOLERANCE, BareFabric, OneSip
from kernbench.oracle.theory.bandwidths import own_read_gbs, slice_gbs
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import (
    MESH_GBS,
    PE_GBS,
    SRAM_GBS,
    TCM_GBS,
    XBAR_GBS,
    RouteEnd,
)
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile

FLOWS = (2, 4, 8)


def sharing(file: TopologyFile) -> list[Check]:
    """All checks of the group; those that need more PEs than the file has are left out."""
    return [*_disjoint(file), *_one_sink(file), *_slices(file)]


def _disjoint(file: TopologyFile) -> Iterator[Check]:
    """PE 0 of each of k cubes writes to the TCM of the last PE of its cube: no common link."""
    system, last = OneSip(file), file.pes_per_cube - 1
    gbs = min(file[PE_GBS], file[TCM_GBS], file[MESH_GBS])
    for flows in (flows for flows in FLOWS if flows <= file.cubes and last > 0):
        yield Check(
            id=f"c.disjoint.{flows}",
            text=f"{flows} flows across {flows} cubes, no common link",
            formula="k B",
            expected=flows * gbs,
            measured=system.rate_gbs(
                lambda nbytes, k=flows: [
                    system.to_tcm((cube, 0), last, nbytes) for cube in range(k)
                ]
            ),
            tolerance=TOLERANCE,
            unit="GB/s",
        )


def _one_sink(file: TopologyFile) -> Iterator[Check]:
    """Several PEs send one packet each to the SRAM, whose link is the narrowest of the route."""
    # Packets queue only at the SRAM link then, and leave it one after the other without gaps.
    narrowest = min(file[SRAM_GBS], file[MESH_GBS], file[PE_GBS])
    file = file.with_values({SRAM_GBS: narrowest})
    times, plan, sram = RouteTimes(file), FloorPlan(file), RouteEnd("sram", 0, 0)
    packet_ps = transfer_ps(FLOW_BYTES, file.number(SRAM_GBS))
    for flows in (flows for flows in FLOWS if flows <= file.pes_per_cube):
        routes = [plan.route(RouteEnd("pe", 0, 0, pe), sram) for pe in range(flows)]
        yield Check(
            id=f"c.sink.{flows}",
            text=f"{flows} PEs send {FLOW_BYTES >> 10} KiB each to the SRAM of their cube",
            formula="T1 + (k-1) n/B",
            expected=min(map(times.latency_ps, routes)) + flows * packet_ps,
            measured=_into_sram_ps(file, flows),
            unit="ps",
        )


def _into_sram_ps(file: TopologyFile, flows: int) -> int:
    net = BareFabric(file)
    sram = net.graph.sram(0)
    net.attach_sink(sram)
    for pe in range(flows):
        net.send(net.graph.pe(0, pe), sram, FLOW_BYTES, pe)
    return max(arrival.tail_ps for arrival in net.run())


def _slices(file: TopologyFile) -> Iterator[Check]:
    """All PEs of a cube read their own slices, then all read the slice of PE 0."""
    system, pes = OneSip(file), range(file.pes_per_cube)
    yield Check(
        id="c.slices.own",
        text=f"{len(pes)} PEs read their own slices",
        formula="PEs x channels x bandwidth x efficiency",
        expected=float(len(pes) * own_read_gbs(file)),
        measured=system.rate_gbs(
            lambda nbytes: [system.read_slice((0, pe), pe, nbytes) for pe in pes]
        ),
        tolerance=TOLERANCE,
        unit="GB/s",
    )
    one_gbs = float(min(slice_gbs(file), file.number(XBAR_GBS)))
    # Links at least as wide as the slice, so that the PEs compete for the slice, not for a link.
    wide = {path: max(file[path], one_gbs) for path in (MESH_GBS, PE_GBS, TCM_GBS)}
    system = OneSip(file.with_values(wide))
    yield Check(
        id="c.slices.one",
        text=f"{len(pes)} PEs read one slice",
        formula="channels x bandwidth x efficiency",
        expected=one_gbs,
        measured=system.rate_gbs(
            lambda nbytes: [system.read_slice((0, pe), 0, nbytes) for pe in pes]
        ),
        tolerance=TOLERANCE,
        unit="GB/s",
    )
