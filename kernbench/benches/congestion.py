"""The bench `congestion`: loads that compete for an HBM slice or a link, and single accesses.

Each measurement has its closed form beside it, from `kernbench.oracle.theory` and the topology file
alone.
"""

from kernbench import BenchOutcome, Column, Table, TableRow, bench, torch
from kernbench.benches.flags import check_least
from kernbench.oracle.checks.transfers.competing_loads import (
    ITEM_BYTES,
    Measurement,
    measurements,
)
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.errors import UsageError
from runtime.device.rank.rank_state import running_rank

LABELS = (Column("scenario"), Column("pes"), Column("size", "B"))
METRICS = (Column("rate", "GB/s"), Column("theory", "ns"), Column("off", "%"))


@bench(
    "congestion",
    "loads that compete for a slice or a link, accesses by distance, DMA and IPCQ; "
    "each beside its closed form",
    size="bytes that each PE loads where PEs compete, in whole packets",
    access="bytes of a single access or message, at most one packet",
)
def congestion(rank: int, *, size: int = 16384, access: int = 4096) -> BenchOutcome:
    """Every rank measures its own SIP; all numbers are simulated times, with data and without."""
    _check_flags(size, access)
    torch.ahbm.set_device(rank)
    topology = running_rank().topology
    rows = measurements(TopologyFile(topology.values()), size, access)
    table = Table(LABELS, METRICS, tuple(map(_row, rows)))
    # The closed forms are those of links with calendars: beside routers they are no verdict.
    judged = rows if topology.noc.flow_control == "unlimited" else []
    ok = sum(row.fits for row in judged)
    return BenchOutcome("congestion", ok, len(judged) - ok, table=table)


def _check_flags(size: int, access: int) -> None:
    topology, packet_bytes = running_rank().topology, running_rank().topology.packet_bytes
    check_least(packet_bytes, size=size)
    check_least(ITEM_BYTES, access=access)
    if size % packet_bytes:
        raise UsageError(f"--size {size}: must be a multiple of {packet_bytes}, one packet")
    if access % ITEM_BYTES or access > packet_bytes:
        raise UsageError(
            f"--access {access}: must be a multiple of {ITEM_BYTES} up to {packet_bytes}, "
            "one packet"
        )
    if 2 * size > topology.kernel_scratch_bytes:
        raise UsageError(
            f"--size {size}: a kernel loads {2 * size:,} bytes at once; its scratch has "
            f"{topology.kernel_scratch_bytes:,}"
        )


def _row(measured: Measurement) -> TableRow:
    """The row of the table; the deviation is that from the lower bound."""
    least_ps = measured.expected.least_ps
    rate_gbs = measured.pes * measured.nbytes * 1000 / measured.measured_ps
    off_percent = 100 * (measured.measured_ps - least_ps) / least_ps
    labels = (measured.scenario, measured.pes, measured.nbytes)
    return TableRow(labels, measured.measured_ps, (rate_gbs, least_ps / 1000, off_percent))
