"""Sums of the pieces of a path by kind, source line or component, the largest first."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from kernbench.explain.why.piece import PathPiece

LONGEST = 20
"""Pieces of a path that reports show one by one."""


class PathShare(Struct, frozen=True):
    """The pieces of a path that have something in common: their time and their number."""

    name: str
    length_ps: int
    pieces: int


def shares(pieces: Iterable[PathPiece], key: Callable[[PathPiece], str]) -> list[PathShare]:
    """The sums of the pieces with equal keys; of equal sums, in the order of their names."""
    lengths, counts = defaultdict[str, int](int), defaultdict[str, int](int)
    for piece in pieces:
        name = key(piece)
        lengths[name] += piece.length_ps
        counts[name] += 1
    sums = [PathShare(name, lengths[name], counts[name]) for name in lengths]
    return sorted(sums, key=lambda share: (-share.length_ps, share.name))


def by_kind(piece: PathPiece) -> str:
    """The kind of a piece."""
    return piece.kind


def by_line(piece: PathPiece) -> str:
    """The statement of a piece; of a piece without one, its kind in brackets."""
    return piece.line or f"({piece.kind})"


def by_component(piece: PathPiece) -> str:
    """The component of a piece, with its SIP."""
    return f"sip{piece.sip}.{piece.component}"


def longest(pieces: Sequence[PathPiece], count: int = LONGEST) -> list[PathPiece]:
    """The longest pieces, of equal ones the first of the path first."""
    return sorted(pieces, key=lambda piece: (-piece.length_ps, piece.begin_ps))[:count]
