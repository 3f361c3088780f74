"""Records of a run: its report, its configuration files, and five tables for each SIP."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from kernbench.explain.records.columns import Columns
from runtime.core.bench_registry import Scalar
from runtime.core.code.imported_code import CodeFile
from runtime.core.run_tables import BIN_PS, LINKS, RunTable
from runtime.core.simtime import NEVER_PS, PS_PER_NS
from runtime.model.topology import Topology, parse_topology

MOST_SIPS = 1 << 16
MOST_NS = NEVER_PS / PS_PER_NS
"""Bounds on the numbers of a report: a damaged one must not make a reader count to 2^63."""
LEAST_BIN_PS = 1024
"""The width of the time bins of a run without links."""


class RunSummary(Struct, frozen=True, kw_only=True):
    """The part of `run.json` that analyses use."""

    bench: str
    kind: str
    program: str
    as_cuda: bool
    sips: Annotated[int, Meta(ge=1, le=MOST_SIPS)]
    passed: bool
    error: str | None
    digest: str
    sim_time_ns: Annotated[float, Meta(ge=0, le=MOST_NS)]
    config_hash: str
    arguments: dict[str, Scalar]
    argv: tuple[str, ...]
    data: bool
    versions: dict[str, str]
    protocol: int
    user_code: dict[str, CodeFile]
    folder: str
    files: dict[str, str]
    inode: int

    @property
    def total_ps(self) -> int:
        """The simulated time of the run: that of the last event of all SIPs."""
        return round(self.sim_time_ns * PS_PER_NS)


@dataclass(frozen=True, kw_only=True)
class RunRecords:
    """The tables of a run on `sips` that ended at `total_ps`.

    `read` returns a table of a SIP; each is read once.
    """

    sips: range
    total_ps: int
    read: Callable[[RunTable, int], Columns]
    _read: dict[tuple[str, int], Columns] = field(
        default_factory=dict[tuple[str, int], Columns], repr=False
    )

    def table(self, table: RunTable, sip: int) -> Columns:
        """A table of a SIP. Raises `UsageError` if it cannot be read."""
        key = (table.name, sip)
        if key not in self._read:
            self._read[key] = self.read(table, sip)
        return self._read[key]

    def tables(self, table: RunTable) -> Mapping[int, Columns]:
        """The table of this kind of every SIP."""
        return {sip: self.table(table, sip) for sip in self.sips}

    @property
    def bin_ps(self) -> int:
        """The width of the time bins of the links, the same for all SIPs."""
        metadata = [each.metadata for each in self.tables(LINKS).values() if len(each)]
        return max((int(each[BIN_PS]) for each in metadata), default=LEAST_BIN_PS)


@dataclass(frozen=True, kw_only=True)
class RecordedRun(RunRecords):
    """A run with its report and its configuration files.

    `name` stands for the run in reports and errors: its directory.
    """

    name: str
    run: RunSummary
    topology_text: str
    ccl_text: str
    directory: Path

    @cached_property
    def topology(self) -> Topology:
        """The machine. Raises `ConfigError` for a file that this version does not accept."""
        return parse_topology(self.topology_text, f"{self.name}/topology.yaml", self.run.sips)
