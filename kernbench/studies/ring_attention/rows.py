"""The points of the study, its rows with their bounds, and the content of `ring_attention.json`.

Bounds are from the topology file alone: the rank with the most scores computes them with all its
PEs all the time. Its link carries the keys and values of the other ranks, each step with a message
of alpha + n/B. Steps overlap, so neither bound contains the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import product

from msgspec import Struct

from kernbench.benches.attention.context_parallel import SequenceParts
from kernbench.benches.attention.reference import F16_TOLERANCE
from kernbench.oracle.theory.engines.attention import ITEM_BYTES, score_times
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.parameter_study import TopologyText
from kernbench.studies.study_results import EngineBounds, StudyResults, below_bound, wrong_by
from runtime.core.errors import UsageError
from runtime.device.kernels.attention.flash import BlockShape


class Division(StrEnum):
    """The mask and the division of the sequence, by the name in the results file."""

    FULL = "full"
    CONTIGUOUS = "causal_contiguous"
    ZIGZAG = "causal_zigzag"

    @property
    def words(self) -> str:
        """The name in the table and in the figures."""
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


class RingBounds(EngineBounds, frozen=True, forbid_unknown_fields=True):
    """Least times, in picoseconds: the engines of the rank with the most work, and its link."""

    gemm_ps: float
    vector_ps: float
    link_ps: float


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


DEPTH, BLOCK_ROWS, WIDTH = 128, 64, 256
"""Columns of a head; queries of a block of scores, and most keys of a block."""
MOST_TOKENS = 1 << 17
"""The longest sequence."""
RANKS = 2, 8
"""Least and most SIPs of a ring."""
CHECKED_SCORES = 1 << 23
"""A run with at most as many scores has data, and its result is compared with float64."""


@dataclass(frozen=True)
class RingPoint:
    """One layer on a topology file, given as text."""

    topology: str
    division: Division
    parts: SequenceParts
    heads: int

    @property
    def shape(self) -> BlockShape:
        """The blocks of scores."""
        return BlockShape(BLOCK_ROWS, min(WIDTH, self.parts.rank_tokens), DEPTH)

    @property
    def has_data(self) -> bool:
        """Whether the result is computed and checked."""
        return self.heads * self.parts.tokens**2 <= CHECKED_SCORES

    @property
    def cost(self) -> int:
        """The scores, of which those with data take longer."""
        scores = self.heads * sum(map(self.parts.scores, range(self.parts.ranks)))
        return scores * (4 if self.has_data else 1)

    def __str__(self) -> str:
        return f"{self.division.words}, {self.parts.tokens} tokens, {self.parts.ranks} SIPs"


def plan_points(topology: TopologyText, sizes: RingSizes) -> tuple[RingPoint, ...]:
    """All points; raises `UsageError` for sizes that chunks or PEs do not divide."""
    file = TopologyFile.of(topology.text)
    if not 1 <= sizes.heads <= file.pes_per_cube:
        raise UsageError(
            f"--heads {sizes.heads}: each head has a PE of one cube, which has {file.pes_per_cube}"
        )
    for sips, tokens in product(sizes.sips, sizes.tokens):
        if tokens % (2 * sips * BLOCK_ROWS):
            raise UsageError(
                f"--tokens {tokens}: {sips} SIPs have 2 chunks each, of whole blocks of "
                f"{BLOCK_ROWS}; {tokens} is no multiple of {2 * sips * BLOCK_ROWS}"
            )
    texts = {sips: file.on_a_ring(sips).text for sips in sizes.sips}
    return tuple(
        RingPoint(
            topology=texts[sips],
            division=division,
            parts=SequenceParts(
                tokens=tokens,
                ranks=sips,
                is_causal=division is not Division.FULL,
                is_zigzag=division is Division.ZIGZAG,
            ),
            heads=sizes.heads,
        )
        for division, tokens, sips in sweep(sizes)
    )


def sweep(sizes: RingSizes) -> Iterator[tuple[Division, int, int]]:
    """The division, the tokens and the SIPs of all rows, in their order."""
    return product(Division, sizes.tokens, sizes.sips)


def ring_bounds(file: TopologyFile, parts: SequenceParts, heads: int, depth: int) -> RingBounds:
    """The bounds with one head on each of `heads` PEs of cube 0 of every SIP."""
    scores = max(map(parts.scores, range(parts.ranks)))
    times = score_times(file, scores, depth)
    # alpha contains no packet, so their size is of no importance.
    costs = KernelCosts(file, packet_bytes=1)
    link = costs.alpha_beta(FloorPlan(file).between_pes((0, 0), (0, 0), 1))
    # Keys and values of a rank, sent on in each of p - 1 steps: H. Liu, M. Zaharia, P. Abbeel,
    # "Ring attention with blockwise transformers for near-infinite context", 2023.
    nbytes = 2 * heads * parts.rank_tokens * depth * ITEM_BYTES
    link_ps: Fraction = (parts.ranks - 1) * link.message_ps(nbytes)
    return RingBounds(
        gemm_ps=float(times.gemm_ps), vector_ps=float(times.vector_ps), link_ps=float(link_ps)
    )
