"""What the study keeps: a row for each point, all of them as `ccl_algorithms.json` and as `ccl_algorithms.csv`."""

from collections.abc import Iterable
from itertools import product
from pathlib import Path

from msgspec import Struct

from kernbench.studies import summary_file, sweep_file
from runtime.core.errors import UsageError

VERSION = 1
"""Of the form of the file."""


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """One point: an all-reduce of `nbytes` a rank and its time.

    `skew_ps` is how far apart the kernels of the ranks started, `wrong` counts wrong elements over all ranks.
    """

    algorithm: str
    ranks: int
    nbytes: int
    time_ps: int
    skew_ps: int
    wrong: int

    @property
    def faults(self) -> list[str]:
        """What cannot be: a wrong sum."""
        return [f"{self.wrong:,} elements are wrong"] if self.wrong else []


class Sweep(Struct, frozen=True, forbid_unknown_fields=True):
    """All rows, and the topology file that they were measured on."""

    version: int
    topology: str
    topology_hash: str
    rows: tuple[Row, ...]


def read_sweep(path: Path) -> Sweep:
    """The sweep in a file; raises `UsageError` that says what is wrong with it."""
    sweep = sweep_file.read(path, Sweep, VERSION)
    found = [(row.algorithm, row.ranks, row.nbytes) for row in sweep.rows]
    if not found or sorted(found) != sorted(product(*map(set, zip(*found, strict=True)))):
        raise UsageError(
            f"{path}: there must be one row for every algorithm, number of ranks and size"
        )
    return sweep


COLUMNS = ("algorithm", "ranks", "bytes_a_rank", "time_ns")


def write_summary(path: Path, rows: Iterable[Row]) -> Path:
    """Write the table for a spreadsheet; raises `UsageError` where that is not possible."""
    return summary_file.write(
        path, COLUMNS, ((row.algorithm, row.ranks, row.nbytes, row.time_ps / 1000) for row in rows)
    )
