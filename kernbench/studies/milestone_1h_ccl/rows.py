"""What the study keeps: a row for each point, all of them as `ccl_sweep.json`, and the main columns as `ccl_summary.csv`."""

from pathlib import Path

from msgspec import Struct

from kernbench.studies import summary_file, sweep_file
from kernbench.studies.milestone_1h_ccl.networks import Layout, Network
from kernbench.studies.milestone_1h_ccl.theory import Parts
from runtime.core.errors import UsageError

VERSION = 1
"""Of the form of the file."""


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """One point: an all-reduce of `nbytes` a PE, its time, and what the theory says.

    `skew_ps` is how far apart the kernels of the SIPs started, `wrong` counts wrong elements over all ranks. `slot_in_ps` is
    how long a slot takes from its sender's DMA until the receiver knows of it, `slot_out_ps` how long the receiver's DMA copies
    it to scratch, both of the median slot; `link_gbs` is the narrowest place between two ranks. No time is below `least_ps`;
    `alpha_beta_ps` is the textbook form, `parts` explains the ring with queues in TCM.
    """

    part: str
    network: Network
    algorithm: str
    buffer_kind: str
    slots: int
    slot_bytes: int
    nbytes: int
    time_ps: int
    skew_ps: int
    wrong: int
    slot_in_ps: int
    slot_out_ps: int
    link_gbs: float
    least_ps: float
    alpha_beta_ps: float
    parts: Parts | None

    @property
    def ratio(self) -> float:
        """Measured time over the textbook form."""
        return self.time_ps / self.alpha_beta_ps

    @property
    def busbw_gbs(self) -> float:
        """Bus bandwidth as nccl-tests defines it for an all-reduce: 2(p-1)/p bytes over time."""
        ranks = self.network.sips
        return 2 * (ranks - 1) / ranks * self.nbytes * 1000 / self.time_ps

    @property
    def point(self) -> tuple[object, ...]:
        """What tells rows apart."""
        return self.part, self.network, self.algorithm, self.buffer_kind, self.slots, self.nbytes

    @property
    def faults(self) -> list[str]:
        """What cannot be: a wrong sum, kernels that start apart, a time that no run can reach."""
        found: list[str] = []
        if self.wrong:
            found.append(f"{self.wrong:,} elements are wrong")
        if self.skew_ps:
            found.append(
                f"kernels start {self.skew_ps:,} ps apart, the time is not that of the all-reduce alone"
            )
        if self.time_ps < self.least_ps:
            found.append(f"{self.time_ps:,} ps are less than the bound of {self.least_ps:,.0f} ps")
        return found


class Sweep(Struct, frozen=True, forbid_unknown_fields=True):
    """All rows, and what they were measured on: `layouts` has the links of each network of the sweep over sizes."""

    version: int
    topology: str
    topology_hash: str
    networks: tuple[Network, ...]
    layouts: tuple[Layout, ...]
    rows: tuple[Row, ...]

    def of(self, part: str) -> list[Row]:
        """The rows of one part: `size`, `kind` or `reference`."""
        return [row for row in self.rows if row.part == part]


def read_sweep(path: Path) -> Sweep:
    """The sweep in a file; raises `UsageError` that says what is wrong with it."""
    sweep = sweep_file.read(path, Sweep, VERSION)
    if len({row.point for row in sweep.rows}) != len(sweep.rows) or not all(
        map(sweep.of, ("size", "kind", "reference"))
    ):
        raise UsageError(f"{path}: there must be rows of all three parts, none twice")
    if len(sweep.networks) != len(sweep.layouts):
        raise UsageError(f"{path}: there must be a layout for every network")
    return sweep


_COLUMNS = (
    "part",
    "topology",
    "w",
    "h",
    "algorithm",
    "buffer_kind",
    "slots",
    "slot_bytes",
    "bytes_a_pe",
    "time_ns",
    "alpha_beta_ns",
    "explained_ns",
    "ratio",
    "busbw_gbs",
    "slot_in_ns",
    "slot_out_ns",
    "wrong",
)


def write_summary(path: Path, sweep: Sweep) -> Path:
    """Write the table for a spreadsheet; raises `UsageError` where that is not possible."""
    return summary_file.write(path, _COLUMNS, map(_cells, sweep.rows))


def _cells(row: Row) -> tuple[object, ...]:
    network, explained = (
        row.network,
        "" if row.parts is None else round(row.parts.total_ps / 1000, 3),
    )
    return (
        row.part,
        network.topology,
        network.w,
        network.h,
        row.algorithm,
        row.buffer_kind,
        row.slots,
        row.slot_bytes,
        row.nbytes,
        row.time_ps / 1000,
        round(row.alpha_beta_ps / 1000, 3),
        explained,
        round(row.ratio, 4),
        round(row.busbw_gbs, 3),
        row.slot_in_ps / 1000,
        row.slot_out_ps / 1000,
        row.wrong,
    )
