"""The rows of the study, and the content of `ccl_algorithms.json`."""

from msgspec import Struct

from kernbench.studies.faults import wrong_count
from kernbench.studies.study_results import StudyResults
from runtime.ccl.selection import CallShape


class AlgorithmRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a collective on `nbytes` a rank, and its simulated time.

    `skew_ps` is the time between the first and the last start of the ranks' kernels, `wrong` the
    number of wrong elements over all ranks. `grid` is the grid of the SIPs, empty for a ring, and
    `cubes` the number of cubes on which the tensor of a rank lies. The selection is made without
    the rows that are `held_out`: they show what it costs at sizes which it was not made for.
    """

    collective: str
    algorithm: str
    ranks: int
    nbytes: int
    time_ps: int
    skew_ps: int
    wrong: int
    grid: str = ""
    cubes: int = 1
    held_out: bool = False

    @property
    def call(self) -> CallShape:
        """What the selection distinguishes."""
        return CallShape(self.nbytes, self.ranks, self.cubes, bool(self.grid))

    @property
    def label(self) -> str:
        """Collective, algorithm, ranks and size."""
        where = f" {self.grid} {self.cubes} cubes" if self.grid else ""
        return f"{self.collective} {self.algorithm} {self.ranks} ranks{where} {self.nbytes} B"

    @property
    def faults(self) -> list[str]:
        """A wrong result."""
        return [*wrong_count(self.wrong)]


class AlgorithmResults(StudyResults[AlgorithmRow], frozen=True, forbid_unknown_fields=True):
    """All rows, and the topology file they were measured on."""

    @property
    def of_tables(self) -> tuple[AlgorithmRow, ...]:
        """The rows from which the selection is made."""
        return tuple(row for row in self.rows if not row.held_out)

    @property
    def held_out(self) -> tuple[AlgorithmRow, ...]:
        """The rows at sizes between those of the selection."""
        return tuple(row for row in self.rows if row.held_out)
