"""Which SIP has which rank of the prefill and of the decode, and which heads move between them.

Each side divides the KV heads over its ranks in order (tensor parallel). A head moves from the rank
of the prefill that has it to the rank of the decode that has it. Between sides of unequal size a
rank sends to several ranks, or receives from several.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class RankOrder(StrEnum):
    """The order of the ranks along the SIPs, by its name in flags and in the results file.

    `blocks`: the ranks of the prefill, then those of the decode. `mirrored`: the same, those of the
    decode in reverse order. `interleaved`: each rank of the smaller side between the ranks of the
    other side with which it shares heads.
    """

    BLOCKS = "blocks"
    MIRRORED = "mirrored"
    INTERLEAVED = "interleaved"


class HeadsMove(NamedTuple):
    """The KV heads of `heads` move from SIP `source` to SIP `target`."""

    heads: range
    source: int
    target: int


class Sides(NamedTuple):
    """The SIP of each rank of the prefill, and of each rank of the decode."""

    prefill: tuple[int, ...]
    decode: tuple[int, ...]

    @classmethod
    def of(cls, order: RankOrder, prefill: int, decode: int) -> "Sides":
        """The SIPs of `prefill` and `decode` ranks; one number must divide the other."""
        if order is RankOrder.INTERLEAVED:
            return _interleaved(prefill, decode)
        others = range(prefill, prefill + decode)
        in_order = others if order is RankOrder.BLOCKS else reversed(others)
        return cls(tuple(range(prefill)), tuple(in_order))

    def moves(self, heads: int) -> Iterator[HeadsMove]:
        """All of `heads` KV heads, which both sides divide: as many for each pair of ranks."""
        each = heads // max(map(len, self))
        for first in range(0, heads, each):
            ranks = (first * len(side) // heads for side in self)
            source, target = (side[rank] for side, rank in zip(self, ranks, strict=True))
            yield HeadsMove(range(first, first + each), source, target)


def _interleaved(prefill: int, decode: int) -> Sides:
    fewer, more = sorted((prefill, decode))
    each = more // fewer
    # A group of SIPs for each rank of the smaller side, which is in its middle.
    middle = each // 2
    single = [group * (each + 1) + middle for group in range(fewer)]
    several = [sip for sip in range(fewer + more) if sip not in single]
    sides = (single, several) if prefill <= decode else (several, single)
    return Sides(*map(tuple, sides))
