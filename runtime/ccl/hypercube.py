"""A rank of a hypercube: its corner, the rank that folds onto it, and the directions of its trees.

With P = 2^floor(log2 p), the first P of p ranks are the corners. Each of the other ranks folds onto
the corner P below it: that corner sends and receives for both. The topology is `hypercube`.
"""

from collections.abc import Sequence
from typing import NamedTuple

FOLD = "global_fold"
"""The direction between a corner and the rank that folds onto it."""


class HypercubeRank(NamedTuple):
    """A rank, and the world size p."""

    rank: int
    size: int

    @property
    def corners(self) -> int:
        """P, the number of corners."""
        return 1 << (self.size.bit_length() - 1)

    @property
    def corner(self) -> int:
        """The own corner, or the one onto which this rank folds."""
        return self.rank % self.corners

    @property
    def bits(self) -> range:
        """The dimensions of the hypercube."""
        return range(self.size.bit_length() - 1)

    @property
    def is_corner(self) -> bool:
        """Whether this rank is a corner."""
        return self.rank < self.corners

    @property
    def has_folds(self) -> bool:
        """Whether some ranks are no corners."""
        return self.size != self.corners

    @property
    def folded(self) -> int | None:
        """The rank that folds onto this corner."""
        other = self.rank + self.corners
        return other if self.is_corner and other < self.size else None

    @property
    def all_ranks(self) -> list[int]:
        """The ranks of all corners."""
        return self.ranks_at(range(self.corners))

    def ranks_at(self, corners: Sequence[int]) -> list[int]:
        """The ranks of some corners: each corner, and behind it the rank that folds onto it."""
        both = (rank for corner in corners for rank in (corner, corner + self.corners))
        return [rank for rank in both if rank < self.size]

    def corners_like(self, corner: int, bit: int) -> list[int]:
        """The corners that differ from a corner in bits below `bit` alone."""
        first = corner >> bit << bit
        return list(range(first, first + (1 << bit)))

    def source(self, root: int) -> str | None:
        """The direction from which this rank receives in a broadcast; None at the root.

        The binomial tree of the root: a corner that differs from that of the root in some bits is
        below the corner without the lowest of them.
        """
        if self.rank == root:
            return None
        relative = self.corner ^ (root % self.corners)
        if not self.is_corner or not relative:
            # The corner onto which the root folds has its elements from there.
            return FOLD
        # `x & -x` is the lowest set bit of x: the parent is the corner without it.
        return f"global_bit_{(relative & -relative).bit_length() - 1}"

    def targets(self, root: int) -> list[str]:
        """The directions in which this rank sends in a broadcast, the largest tree first."""
        if not self.is_corner:
            return [FOLD] if self.rank == root else []
        relative = self.corner ^ (root % self.corners)
        # The children of a corner set one bit below its lowest set bit; the root has all bits.
        below = (relative & -relative).bit_length() - 1 if relative else len(self.bits)
        targets = [f"global_bit_{bit}" for bit in reversed(range(below))]
        return targets + [FOLD] * (self.folded is not None and self.folded != root)
