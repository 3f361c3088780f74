"""The content of `ring_attention.json`."""

from enum import StrEnum

from msgspec import Struct

from kernbench.benches.attention.reference import F16_TOLERANCE
from kernbench.studies.faults import below_bound, wrong_by
from kernbench.studies.study_results import StudyResults


class Division(StrEnum):
    """The mask and the division of the sequence, by the name in the results file."""

    FULL = "full"
    CONTIGUOUS = "causal_contiguous"
    ZIGZAG = "causal_zigzag"

    @property
    def words(self) -> str:
        """As the table and the figures name it."""
        return {
            Division.FULL: "no mask",
            Division.CONTIGUOUS: "causal, contiguous",
            Division.ZIGZAG: "causal, zig-zag",
        }[self]


class RingSizes(Struct, frozen=True, forbid_unknown_fields=True):
    """The sizes of the sweep."""

    heads: int
    depth: int
    tokens: tuple[int, ...]
    sips: tuple[int, ...]


class RingBounds(Struct, frozen=True, forbid_unknown_fields=True):
    """Least times, in picoseconds: the engines of the rank with the most work, and its link."""

    gemm_ps: float
    vector_ps: float
    link_ps: float

    @property
    def bound_ps(self) -> float:
        """The longest of the three."""
        return max(self.gemm_ps, self.vector_ps, self.link_ps)

    @property
    def binds(self) -> str:
        """What the bound is the time of."""
        times = {"GEMM": self.gemm_ps, "vector": self.vector_ps, "link": self.link_ps}
        return max(times, key=times.__getitem__)


class RingRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One layer. `error` is the largest absolute difference from float64, None without data.

    `layer_ps` is the time from the first command to the end of the last kernel of all SIPs. SIP r
    has kernels for `kernels_ps[r]` of it. `exposed_ps` is the rest of the time on the SIP that
    ends last: it waits for keys and values, or for a launch.
    """

    division: Division
    sips: int
    tokens: int
    layer_ps: int
    kernels_ps: tuple[int, ...]
    exposed_ps: int
    bounds: RingBounds
    error: float | None

    @property
    def label(self) -> str:
        """Division, tokens and SIPs."""
        return f"{self.division.words}, {self.tokens} tokens, {self.sips} SIPs"

    @property
    def time_ps(self) -> int:
        """The simulated time of the layer."""
        return self.layer_ps

    @property
    def share(self) -> float:
        """The bound as a share of the time."""
        return self.bounds.bound_ps / self.layer_ps

    @property
    def faults(self) -> list[str]:
        """A wrong result, a time below the bound."""
        return [
            *wrong_by(self.error, F16_TOLERANCE),
            *below_bound(self.layer_ps, self.bounds.bound_ps),
        ]


class RingResults(StudyResults[RingRow], frozen=True, forbid_unknown_fields=True):
    """The file."""

    sizes: RingSizes

    def of(self, division: Division, tokens: int) -> tuple[RingRow, ...]:
        """The rows of a division and a length, by rising number of SIPs."""
        return tuple(row for row in self.rows if row.division is division and row.tokens == tokens)
