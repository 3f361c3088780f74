"""Group h: how an HBM slice spreads bursts over its pseudo channels, and what the mesh has to do with it: nothing."""

from collections.abc import Iterator

from kernbench.theory.bandwidths import slice_gbs
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.check import Check
from kernbench.validate.sharing import BYTES, TOLERANCE, rate_gbs
from kernbench.validate.transfers import OneSip, dma_records

BURSTS = 96


def channels(file: TopologyFile) -> list[Check]:
    """All checks of the group."""
    return [*_strides(file), *_independence(file)]


def _strides(file: TopologyFile) -> Iterator[Check]:
    system = OneSip(file)
    full_gbs = min(float(slice_gbs(file)), file["xbar.to_hbm_bw_gbs"], file["pe.tcm.bw_gbs"])
    stream = rate_gbs(system, lambda nbytes: [system.read_slice((0, 0), 0, nbytes)])
    yield Check(
        "h.stripe",
        "one long read",
        "channels x bandwidth x efficiency",
        full_gbs,
        stream,
        TOLERANCE,
        "GB/s",
    )
    count = file["hbm.num_pcs"]
    for reached in (reached for reached in (1, 2) if count % reached == 0 and count > reached):
        stride = count // reached
        says = f"single bursts, {stride} bursts apart, reach {reached} of {count} channels"
        expected = min(float(slice_gbs(file)) * reached / count, full_gbs)
        yield Check(
            f"h.stride.{stride}",
            says,
            "slice / stride",
            expected,
            _strided_gbs(file, stride),
            TOLERANCE,
            "GB/s",
        )


def _strided_gbs(file: TopologyFile, stride: int) -> float:
    """The steady rate of reads of one burst each, with as many outstanding as there are."""
    system, burst = (
        OneSip(file.with_values({"pe.dma.channels": 2 * BURSTS})),
        file["hbm.burst_bytes"],
    )

    def span_ps(bursts: int) -> int:
        return system.span_ps(
            [system.read_slice((0, 0), 0, burst, index * stride * burst) for index in range(bursts)]
        )

    return BURSTS * burst * 1000 / (span_ps(2 * BURSTS) - span_ps(BURSTS))


def _independence(file: TopologyFile) -> Iterator[Check]:
    """PE 0 reads its slice while all others of its cube write across the mesh into the TCM of the last PE."""
    system, last = OneSip(file), file.pes_per_cube - 1
    if last < 2:
        return
    own = system.read_slice((0, 0), 0, BYTES)
    others = [system.to_tcm((0, pe), last, BYTES) for pe in range(1, last)]
    [alone] = dma_records(system.run([own]))
    crowd = system.run([*others, own])
    [beside] = [record for record in dma_records(crowd) if record.pe == 0]
    alone_ns, beside_ns = ((record.end_ps - record.start_ps) / 1000 for record in (alone, beside))
    says = f"PE 0 reads its slice while {len(others)} PEs saturate the mesh"
    yield Check("h.local", says, "as alone", alone_ns, beside_ns, 0, "ns")
    fabric = crowd.node.chips[0].fabric
    busiest = fabric.busiest()[0]
    span_ps = max(record.end_ps for record in dma_records(crowd)) - min(
        record.start_ps for record in dma_records(crowd)
    )
    yield Check(
        "h.saturated",
        f"meanwhile, {busiest.name}: share of the time",
        "1",
        1,
        busiest.busy_ps / span_ps,
        0.05,
        "",
    )
