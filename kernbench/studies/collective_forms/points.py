"""The points of the study: calls by collective, PEs of a rank, number of ranks and size."""

from collections.abc import Iterator
from dataclasses import dataclass

from kernbench.benches.flags import check_range
from kernbench.oracle.theory.collectives.collective_forms import FORMS
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.ccl_algorithms.points import AlgorithmPoint
from kernbench.studies.number_list import rising_numbers

SMALLEST_BYTES, SMALLEST_ON_ALL_PES, STEP = 1 << 16, 1 << 18, 4
CHECKED_BYTES = 1 << 18
"""Up to this size a run has data, and every element is checked."""
ON_ALL_PES = ("all_reduce", "all_to_all_single")
"""The collectives that are measured on all PEs, too."""
ITEM_BYTES = 2
"""An element is float16."""
IN_PARTS = frozenset({"reduce_scatter_tensor", "all_gather_into_tensor", "all_to_all_single"})
"""The collectives whose larger tensor has a part for every rank."""
MOST_RANKS, MOST_BYTES = 64, 1 << 30


@dataclass(frozen=True)
class FormPoint:
    """One call on `nbytes` in the larger tensor of a rank, on one PE or on all `pes` of a SIP.

    The tensor is rounded down to equally many elements of every part on every PE.
    """

    topology: str
    ccl: str
    collective: str
    pes: int
    ranks: int
    nbytes: int

    @property
    def call(self) -> AlgorithmPoint:
        """The same call as a point of `ccl-algorithms`, whose size is that of the input."""
        is_gather = self.collective == "all_gather_into_tensor"
        unit = ITEM_BYTES * self.pes * (self.ranks if self.collective in IN_PARTS else 1)
        nbytes = self.nbytes // unit * unit
        return AlgorithmPoint(
            topology=self.topology,
            ccl=self.ccl,
            collective=self.collective,
            algorithm="pairwise" if self.collective == "all_to_all_single" else "ring",
            ranks=self.ranks,
            nbytes=nbytes // self.ranks if is_gather else nbytes,
        )

    @property
    def is_checked(self) -> bool:
        """Whether the run has data."""
        return self.nbytes <= CHECKED_BYTES

    @property
    def cost(self) -> int:
        """Events grow with the bytes on the links, and with the chips that are built."""
        return self.ranks * (self.nbytes + 50_000) + 8 * (self.ranks * self.pes) ** 2

    def __str__(self) -> str:
        return f"{self.collective} {self.ranks} ranks {self.pes} PEs {self.nbytes} B"


def plan_points(
    topology: str, ccl: str, ranks: str, max_bytes: int, all_pes_bytes: int
) -> tuple[FormPoint, ...]:
    """All points, on rings of the SIPs of a topology file; `UsageError` for wrong flags."""
    check_range(SMALLEST_BYTES, MOST_BYTES, max_bytes=max_bytes)
    if all_pes_bytes:
        check_range(SMALLEST_ON_ALL_PES, MOST_BYTES, all_pes_bytes=all_pes_bytes)
    counts, file = rising_numbers("--ranks", ranks, 2, MOST_RANKS), TopologyFile.of(topology)
    # Rendering a file takes milliseconds: once for each ring, not for each point.
    rings = {count: file.on_a_ring(count).text for count in counts}
    return tuple(
        FormPoint(
            topology=text,
            ccl=ccl,
            collective=collective,
            pes=pes,
            ranks=count,
            nbytes=nbytes,
        )
        for pes, collectives, least, most in (
            (1, FORMS, SMALLEST_BYTES, max_bytes),
            (file.cubes * file.pes_per_cube, ON_ALL_PES, SMALLEST_ON_ALL_PES, all_pes_bytes),
        )
        for collective in collectives
        for count, text in rings.items()
        for nbytes in _sizes(least, most)
    )


def _sizes(nbytes: int, max_bytes: int) -> Iterator[int]:
    while nbytes <= max_bytes:
        yield nbytes
        nbytes *= STEP
