"""The critical path as columns of the page: pieces, their texts once each, and their routes."""

from collections.abc import Iterator, Sequence
from typing import Any

from kernbench.explain.records import RecordedRun
from kernbench.explain.web.path_routes import NO_ROUTE, PathRoutes
from kernbench.explain.why.piece import PathPiece
from kernbench.explain.why.shares import by_kind, shares

MOST_PIECES = 20_000
"""Pieces that a page has one by one; runs of shorter ones between them are joined."""
_TEXTS = ("kind", "component", "what", "cause", "line")


def path_data(
    records: RecordedRun, pieces: Sequence[PathPiece], most: int = MOST_PIECES
) -> dict[str, Any]:
    """The pieces in the order of their begins, which tile the run as those of the path do."""
    routes, texts = PathRoutes(records), dict[str, int]()
    names = ("begin_ps", "end_ps", "sip", "cube", "pe", "route", *_TEXTS)
    columns: dict[str, list[int]] = {name: [] for name in names}
    for piece, number in _joined(pieces, most):
        for name in ("begin_ps", "end_ps", "sip", "cube", "pe"):
            columns[name].append(getattr(piece, name))
        columns["route"].append(routes.of(piece) if number == 1 else NO_ROUTE)
        for name in _TEXTS:
            columns[name].append(texts.setdefault(str(getattr(piece, name)), len(texts)))
    links = dict[str, int]()
    coded = [
        [(sip, [links.setdefault(link, len(links)) for link in passed]) for sip, passed in route]
        for route in routes.routes
    ]
    return {
        "pieces": columns,
        "texts": list(texts),
        "routes": coded,
        "links": list(links),
    }


def _joined(pieces: Sequence[PathPiece], most: int) -> Iterator[tuple[PathPiece, int]]:
    """The pieces, each with its number; the shortest joined with others beside them."""
    if len(pieces) <= most:
        yield from ((piece, 1) for piece in pieces)
        return
    least_ps = sorted((piece.length_ps for piece in pieces), reverse=True)[most - 1]
    short: list[PathPiece] = []
    for piece in pieces:
        if piece.length_ps < least_ps:
            short.append(piece)
            continue
        yield from _as_one(short)
        short = []
        yield piece, 1
    yield from _as_one(short)


def _as_one(pieces: Sequence[PathPiece]) -> Iterator[tuple[PathPiece, int]]:
    """Consecutive pieces as one, of the kind that has most of their time."""
    if len(pieces) < 2:
        yield from ((piece, 1) for piece in pieces)
        return
    kind = shares(pieces, by_kind)[0].name
    longest = max((each for each in pieces if each.kind == kind), key=lambda each: each.length_ps)
    whole = PathPiece(
        pieces[0].begin_ps,
        pieces[-1].end_ps,
        kind=longest.kind,
        component=longest.component,
        what=f"{longest.what} and {len(pieces) - 1} more",
        sip=longest.sip,
        cube=longest.cube,
        pe=longest.pe,
        line=longest.line,
    )
    yield whole, len(pieces)
