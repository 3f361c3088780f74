"""The points of the study: one layer by mask and division, tokens and SIPs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kernbench.benches.attention.context_parallel import SequenceParts
from kernbench.benches.attention.flash import BlockShape
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.parameter_study import TopologyText
from kernbench.studies.ring_attention.rows import Division, RingSizes
from runtime.core.errors import UsageError

DEPTH, BLOCK_ROWS, WIDTH = 128, 64, 256
"""Columns of a head; queries of a block of scores, and most keys of a block."""
MOST_TOKENS = 1 << 17
"""The longest sequence."""
RANKS = 2, 8
"""Least and most SIPs of a ring."""
CHECKED_SCORES = 1 << 23
"""A run with at most as many scores has data, and its result is compared with float64."""


class RingSize(NamedTuple):
    """One row of the sweep."""

    division: Division
    tokens: int
    sips: int


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
    for sips in sizes.sips:
        for tokens in sizes.tokens:
            if tokens % (2 * sips * BLOCK_ROWS):
                raise UsageError(
                    f"--tokens {tokens}: {sips} SIPs have 2 chunks each, of whole blocks of "
                    f"{BLOCK_ROWS}; {tokens} is no multiple of {2 * sips * BLOCK_ROWS}"
                )
    texts = {sips: file.on_a_ring(sips).text for sips in sizes.sips}
    return tuple(
        RingPoint(
            topology=texts[size.sips],
            division=size.division,
            parts=SequenceParts(
                tokens=size.tokens,
                ranks=size.sips,
                is_causal=size.division is not Division.FULL,
                is_zigzag=size.division is Division.ZIGZAG,
            ),
            heads=sizes.heads,
        )
        for size in sweep(sizes)
    )


def sweep(sizes: RingSizes) -> Iterator[RingSize]:
    """The sizes of all rows, in their order."""
    for division in Division:
        for tokens in sizes.tokens:
            for sips in sizes.sips:
                yield RingSize(division, tokens, sips)
