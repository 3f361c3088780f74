"""Group h: distribution of bursts over HBM pseudo channels, and independence of the mesh."""

from collections.abc import Iterator

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.transfers.transfers import FLOW_BYTES, TOLERANCE, OneSip, dma_records
from kernbench.oracle.theory.bandwidths import own_read_gbs, slice_gbs
from kernbench.oracle.theory.topology_file import TopologyFile

BURSTS = 96


def channels(file: TopologyFile) -> list[Check]:
    """All checks of the group."""
    return [*_strides(file), *_independence(file)]


def _strides(file: TopologyFile) -> Iterator[Check]:
    """A long stream uses all channels; single bursts at a stride use only some of them."""
    system, full_gbs = OneSip(file), float(own_read_gbs(file))
    yield Check(
        id="h.stripe",
        text="one long read",
        formula="channels x bandwidth x efficiency",
        expected=full_gbs,
        measured=system.rate_gbs(lambda nbytes: [system.read_slice((0, 0), 0, nbytes)]),
        tolerance=TOLERANCE,
        unit="GB/s",
    )
    count = file["hbm.num_pcs"]
    for used in (used for used in (1, 2) if count % used == 0 and count > used):
        stride = count // used
        yield Check(
            id=f"h.stride.{stride}",
            text=f"single bursts, {stride} bursts apart, use {used} of {count} channels",
            formula="slice / stride",
            expected=min(float(slice_gbs(file)) * used / count, full_gbs),
            measured=_strided_gbs(file, stride),
            tolerance=TOLERANCE,
            unit="GB/s",
        )


def _strided_gbs(file: TopologyFile, stride: int) -> float:
    """The steady rate of reads of one burst each, all of them in flight at once."""
    # A DMA channel and a packet in flight per burst, so that latency does not limit the rate.
    deep = {"pe.dma.channels": 2 * BURSTS, "pe.dma.outstanding": 2 * BURSTS}
    system = OneSip(file.with_values(deep))
    burst = file["hbm.burst_bytes"]

    def span_ps(bursts: int) -> int:
        offsets = range(0, bursts * stride * burst, stride * burst)
        return system.span_ps([system.read_slice((0, 0), 0, burst, offset) for offset in offsets])

    return BURSTS * burst * 1000 / (span_ps(2 * BURSTS) - span_ps(BURSTS))


def _independence(file: TopologyFile) -> Iterator[Check]:
    """PE 0 reads its slice while all others write across the mesh into the TCM of the last PE.

    A PE reaches its own slice over the crossbar, without the mesh.
    """
    system, last = OneSip(file), file.pes_per_cube - 1
    if last < 2:
        return
    own = system.read_slice((0, 0), 0, FLOW_BYTES)
    others = [system.to_tcm((0, pe), last, FLOW_BYTES) for pe in range(1, last)]
    [alone] = dma_records(system.run([own]))
    world = system.run([*others, own])
    records = dma_records(world)
    [beside] = [record for record in records if record.pe == 0]
    alone_ns, beside_ns = ((record.end_ps - record.start_ps) / 1000 for record in (alone, beside))
    yield Check(
        id="h.local",
        text=f"PE 0 reads its slice while {len(others)} PEs saturate the mesh",
        formula="as alone",
        expected=alone_ns,
        measured=beside_ns,
        unit="ns",
    )
    busiest = world.node.chips[0].fabric.busiest()[0]
    span_ps = max(record.end_ps for record in records) - min(record.start_ps for record in records)
    yield Check(
        id="h.saturated",
        text=f"meanwhile, {busiest.name}: share of the time it is busy",
        formula="1",
        expected=1,
        measured=busiest.busy_ps / span_ps,
        tolerance=0.05,
        unit="",
    )
