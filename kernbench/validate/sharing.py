"""Group c: flows that share nothing, flows into one sink, PEs on their own slices and on one."""

from collections.abc import Callable, Iterator
from math import ceil

from kernbench.theory.bandwidths import slice_gbs
from kernbench.theory.floor_plan import FloorPlan, pe_stem, sram_stem
from kernbench.theory.topology_file import TopologyFile
from kernbench.theory.transfers import RouteTimes
from kernbench.validate.check import Check
from kernbench.validate.transfers import BareFabric, OneSip
from runtime.core.requests import PeDmaMsg

FLOWS = (2, 4, 8)
BYTES = 1 << 18
TOLERANCE = 1e-3


def sharing(file: TopologyFile) -> list[Check]:
    """All checks of the group; those that need more PEs than the file has are left out."""
    return [*_disjoint(file), *_one_sink(file), *_slices(file)]


def rate_gbs(system: OneSip, batch: Callable[[int], list[PeDmaMsg]]) -> float:
    """Bytes a nanosecond in the steady state: what a batch twice as long takes longer. `batch(n)` moves n bytes a flow."""
    more = sum(request.nbytes for request in batch(2 * BYTES)) - sum(
        request.nbytes for request in batch(BYTES)
    )
    return more * 1000 / (system.span_ps(batch(2 * BYTES)) - system.span_ps(batch(BYTES)))


def _disjoint(file: TopologyFile) -> Iterator[Check]:
    """PE 0 of each of k cubes writes to the TCM of the last PE of its cube: ways that meet nowhere."""
    system, last = OneSip(file), file.pes_per_cube - 1
    gbs = min(file["pe.to_router_bw_gbs"], file["pe.tcm.bw_gbs"], file["cube.noc.link_bw_gbs"])
    for flows in (flows for flows in FLOWS if flows <= file.cubes and last > 0):
        measured = rate_gbs(
            system,
            lambda nbytes, k=flows: [system.to_tcm((cube, 0), last, nbytes) for cube in range(k)],
        )
        says = f"{flows} flows across {flows} cubes share nothing"
        yield Check(f"c.disjoint.{flows}", says, "k B", flows * gbs, measured, TOLERANCE, "GB/s")


def _one_sink(file: TopologyFile) -> Iterator[Check]:
    """So many PEs of a cube send one packet each to its SRAM, whose link is the narrowest of the way."""
    narrowest = min(
        file["cube.sram_to_router_bw_gbs"],
        file["cube.noc.link_bw_gbs"],
        file["pe.to_router_bw_gbs"],
    )
    file = file.with_values({"cube.sram_to_router_bw_gbs": narrowest})
    form, plan = RouteTimes(file), FloorPlan(file)
    sram = plan.cube.sram()
    for flows in (flows for flows in FLOWS if flows <= file.pes_per_cube):
        pes = [plan.cube.pe(pe) for pe in range(flows)]
        ways = [pe_stem(pe)[0] + plan.cube.mesh(pe[0], sram[0]) + sram_stem(sram)[1] for pe in pes]
        bytes_ps = ceil(BYTES * 1000 / file.number("cube.sram_to_router_bw_gbs"))
        expected_ps = min(form.latency_ps(way) for way in ways) + flows * bytes_ps
        says = f"{flows} PEs send {BYTES >> 10} KiB each to the SRAM of their cube"
        yield Check(
            f"c.sink.{flows}",
            says,
            "T1 + (k-1) n/B",
            expected_ps,
            _into_sram_ps(file, flows),
            0,
            "ps",
        )


def _into_sram_ps(file: TopologyFile, flows: int) -> int:
    net = BareFabric(file)
    sram = net.graph.sram(0)
    net.attach_sink(sram)
    for pe in range(flows):
        net.send(net.graph.pe(0, pe), sram, BYTES, pe)
    return max(arrival.tail_ps for arrival in net.run())


def _slices(file: TopologyFile) -> Iterator[Check]:
    """All PEs of a cube read their own slices, then all the slice of PE 0."""
    system, pes = OneSip(file), range(file.pes_per_cube)
    own_gbs = min(float(slice_gbs(file)), file["xbar.to_hbm_bw_gbs"], file["pe.tcm.bw_gbs"])
    own = rate_gbs(system, lambda nbytes: [system.read_slice((0, pe), pe, nbytes) for pe in pes])
    says = f"{len(pes)} PEs read their own slices"
    yield Check(
        "c.slices.own",
        says,
        "PEs x channels x bandwidth x efficiency",
        len(pes) * own_gbs,
        own,
        TOLERANCE,
        "GB/s",
    )
    one_gbs = min(float(slice_gbs(file)), file["xbar.to_hbm_bw_gbs"])
    # Links as wide as the slice at least, so that it is the slice that the PEs share and not the way to it.
    wide = {
        path: max(file[path], one_gbs)
        for path in ("cube.noc.link_bw_gbs", "pe.to_router_bw_gbs", "pe.tcm.bw_gbs")
    }
    system = OneSip(file.with_values(wide))
    one = rate_gbs(system, lambda nbytes: [system.read_slice((0, pe), 0, nbytes) for pe in pes])
    says = f"{len(pes)} PEs read one slice"
    yield Check(
        "c.slices.one", says, "channels x bandwidth x efficiency", one_gbs, one, TOLERANCE, "GB/s"
    )
