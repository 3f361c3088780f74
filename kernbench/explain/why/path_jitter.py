"""The jitter on a critical path: time by which hosts, and packets between SIPs, were late.

Records have the delays of each source (`runtime.model.jitter`). A piece of the path waited for
those of its own sources: the rank program for its start, a submission for its command, a transfer
for the packets at the ports on its way. Of such a piece, this time becomes a piece of its own,
which precedes the rest.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from kernbench.explain.records import RecordedRun
from kernbench.explain.records.columns import Numbers
from kernbench.explain.why.intervals import Coverage, Intervals, joined
from kernbench.explain.why.machine_times import MachineTimes
from kernbench.explain.why.path import CriticalPath
from kernbench.explain.why.piece import PathPiece, PieceKind
from kernbench.explain.why.work import (
    OperandWork,
    PathWork,
    QueueWork,
    SubmissionWork,
    TransferWork,
)
from kernbench.oracle.theory.paths.routes import RouteEnd
from runtime.core.run_tables import OPS
from runtime.model.grid_of_sips import SWITCH
from runtime.model.jitter import COMMAND, ENGINE, START

Source = tuple[int, str]
"""A SIP, and the name of a source in it: a port to another SIP, the commands, the start."""
_TO_SWITCH = f"ucie.{SWITCH}"


def delays(records: RecordedRun) -> dict[Source, Intervals]:
    """The intervals by which events of each source were late."""
    parts = dict[Source, Intervals]()
    for sip, ops in sorted(records.tables(OPS).items()):
        late = ops.take(ops.text("engine").equal(ENGINE))
        names = late.text("name")
        for code, name in enumerate(names.values):
            rows: Numbers = (names.codes == code).nonzero()[0]
            if len(rows):
                parts[sip, name] = late["start_ps"][rows], late["end_ps"][rows]
    return parts


def with_jitter(records: RecordedRun, path: CriticalPath) -> CriticalPath:
    """The path with pieces of their own for jitter."""
    return CriticalPath(path.total_ps, tuple(divided(records, path.pieces)))


def divided(records: RecordedRun, pieces: Sequence[PathPiece]) -> Iterator[PathPiece]:
    """The pieces of a path, and before those that waited for jitter a piece with its time."""
    late = delays(records)
    if not late:
        yield from pieces
        return
    sources_of = _PieceSources(records)

    @cache
    def coverage(sources: tuple[Source, ...]) -> Coverage:
        return Coverage.of(*joined([late[each] for each in sources]))

    for piece in pieces:
        sources = tuple(each for each in sources_of(piece) if each in late)
        if not sources:
            yield piece
            continue
        before_ps = coverage(sources).until(np.array([piece.begin_ps, piece.end_ps]))
        late_ps = min(int(before_ps[1] - before_ps[0]), sources_of.most_ps(piece))
        if late_ps > 0:
            sip, name = sources[0]
            end_ps = piece.begin_ps + late_ps
            yield PathPiece(
                begin_ps=piece.begin_ps,
                end_ps=end_ps,
                kind=PieceKind.JITTER,
                component="host" if name in {START, COMMAND} else f"io.{name}",
                what=f"late {name}",
                sip=sip,
                cause=name,
                line=piece.line,
            )
            if end_ps < piece.end_ps:
                yield replace(piece, begin_ps=end_ps)
        else:
            yield piece


class _PieceSources:
    """The sources of jitter that a piece of a path may have waited for."""

    def __init__(self, records: RecordedRun) -> None:
        self._work, self._times = PathWork(records), MachineTimes(records.topology)

    def __call__(self, piece: PathPiece) -> list[Source]:
        """The sources, the first on the way first."""
        if piece.kind is PieceKind.HOST and piece.command < 0:
            return [(piece.sip, START)]
        match self._work.of(piece):
            case SubmissionWork():
                return [(piece.sip, COMMAND)]
            case QueueWork(link, _):
                return [(piece.sip, link)]
            case TransferWork() as transfer:
                return self._of_transfer(transfer)
            case OperandWork(transfer):
                return self._of_transfer(transfer)
            case _:
                return []

    def most_ps(self, piece: PathPiece) -> int:
        """The time of a piece beyond the closed form of its transfer.

        Behind its packets, others may come late to the same port, and it waits for none of them.
        """
        work = self._work.of(piece)
        if not isinstance(work, TransferWork):
            return piece.length_ps
        alone = self._times.of(work)
        return round(piece.length_ps - alone.fixed_ps - alone.bytes_ps)

    def _of_transfer(self, transfer: TransferWork) -> list[Source]:
        ports = self._ports(transfer.source, transfer.target)
        if transfer.kind == "read":
            # Its request goes the other way.
            return [*self._ports(transfer.target, transfer.source), *ports]
        return ports

    def _ports(self, source: RouteEnd, target: RouteEnd) -> list[Source]:
        """The ports by which a route leaves SIPs; to a switch, a SIP has one for all others."""
        return [
            (sip, name)
            for hop, onward in pairwise(self._times.route(source, target))
            if onward.sip != hop.sip or onward.node == SWITCH
            for sip, name in ((hop.sip, hop.node.removeprefix("io.")), (hop.sip, _TO_SWITCH))
        ]
