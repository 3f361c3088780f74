"""The critical path of a run: the chain of dependencies that ends last, as pieces of time.

The walk begins where the last rank program ends, or with the answer of a command that no program
waited for if that comes later, and goes back in time. A program waits in steps;
a step is ended by an operation or a command; an operation was requested by a step, when it had its
operands, its slot or its credit, and began when its engine was free; a command was sent by the rank
program, or began when another one ended. Each of these is a piece of the path, and where one piece
begins, the piece before it ends: the pieces tile the run. Of several operations that end at the
same picosecond each one is binding, and the walk takes the last of the op log.

    step of a kernel  -> the operation that released it -> ... -> the step that requested it
    send              -> (credit) the receive that freed the slot, on the PE of its receiver
    recv              -> (slot) the arrival -> the send that filled it, on the PE of its sender
    barrier           -> the PE of the launch that came last
    begin of a kernel -> its command -> (stream) the command before, or the rank program
    step of a rank    -> the command answered last -> the kernel of it that ended last

Where no record explains what a program waited for, the piece is `unexplained`.
"""

from collections.abc import Sequence

from msgspec import Struct

from kernbench.explain.records import RunRecords
from kernbench.explain.why.cursor import (
    AtCommand,
    AtOp,
    AtProgram,
    BeforeOp,
    Cursor,
    RunIndex,
    WalkContext,
)
from kernbench.explain.why.path_commands import before_command, end_of_command
from kernbench.explain.why.path_operations import at_operation, before_operation
from kernbench.explain.why.path_programs import before_program
from kernbench.explain.why.piece import PathPiece, PieceKind
from runtime.core.errors import InvariantError
from runtime.core.run_tables import COMMANDS, NONE, PROGRAMS, RANK_PROGRAM


class CriticalPath(Struct, frozen=True):
    """The pieces of the path in ascending order; they tile the time from 0 to `total_ps`."""

    total_ps: int
    pieces: Sequence[PathPiece]

    @property
    def unexplained_ps(self) -> int:
        """The time of the path that no record explains."""
        return sum(each.length_ps for each in self.pieces if each.kind is PieceKind.UNEXPLAINED)


def critical_path(
    records: RunRecords, index: RunIndex | None = None, *, through_engines: bool = True
) -> CriticalPath:
    """The critical path over all SIPs.

    An operation that waited for its engine leads to the one which had it; without
    `through_engines`, the wait is a piece and the request precedes it. `index` is that of the
    records, for several walks.
    """
    total_ps = records.total_ps
    walk = WalkContext(index or RunIndex.of(records), through_engines)
    _walk(walk, _end(walk, records))
    pieces = tuple(reversed(walk.pieces))
    reached_ps = 0
    for piece in pieces:
        if piece.begin_ps != reached_ps:
            raise InvariantError(
                "critical path",
                f"a piece ends at {reached_ps} ps and the next begins at {piece.begin_ps} ps",
            )
        reached_ps = piece.end_ps
    if reached_ps != total_ps:
        raise InvariantError("critical path", f"it ends at {reached_ps} of {total_ps} ps")
    return CriticalPath(total_ps, pieces)


def path_of_program(
    records: RunRecords, index: RunIndex, sip: int, program: int, until_ps: int
) -> tuple[PathPiece, ...]:
    """The chain that ends with a program, back to `until_ps`; the first piece may begin before."""
    programs = records.table(PROGRAMS, sip)
    end_ps = programs["end_ps"].item(index.sips[sip].program_rows.item(program))
    walk = WalkContext(index)
    _walk(walk, AtProgram(sip, program, end_ps), until_ps)
    return tuple(reversed(walk.pieces))


def _end(walk: WalkContext, records: RunRecords) -> AtProgram | AtCommand:
    """The end of the last rank program, or what a command executed that was answered later."""
    sip, end_ps = last_rank(records)
    answered_sip, row, answered_ps = _last_answered(records)
    is_answer = answered_ps > end_ps
    if is_answer:
        sip, end_ps = answered_sip, answered_ps
    # Credits, which nothing waits for.
    walk.add(
        end_ps,
        records.total_ps,
        PieceKind.COMMUNICATION,
        "fabric",
        "messages in flight",
        sip=sip,
    )
    if is_answer:
        return end_of_command(walk, sip, row, end_ps)
    return AtProgram(sip, RANK_PROGRAM, end_ps)


def _walk(walk: WalkContext, begin: AtProgram | AtCommand, until_ps: int = 0) -> None:
    """Go back from `begin` until a time."""
    cursor: Cursor | None = begin
    reached_ps = begin.time_ps
    passed = set[Cursor]()
    while cursor is not None and reached_ps > until_ps:
        sip = cursor.op.sip if isinstance(cursor, AtOp | BeforeOp) else cursor.sip
        if cursor in passed or cursor.time_ps > reached_ps:
            # Records that lead back to themselves, or to later times, explain nothing.
            cursor = walk.unexplained(sip, reached_ps)
        else:
            walk.add(
                cursor.time_ps, reached_ps, PieceKind.UNEXPLAINED, "unexplained", "gap", sip=sip
            )
            passed.add(cursor)
            cursor = _before(walk, cursor)
        if walk.pieces:
            reached_ps = walk.pieces[-1].begin_ps
    walk.add(until_ps, reached_ps, PieceKind.UNEXPLAINED, "unexplained", "no record", sip=begin.sip)


def _before(walk: WalkContext, cursor: Cursor) -> Cursor | None:
    """The predecessor of a cursor, behind the pieces between; kept for all walks of an index."""
    # Only what precedes the queue of an operation depends on the walk.
    key = cursor, isinstance(cursor, BeforeOp) and walk.through_engines
    known = walk.index.before.get(key)
    if known is None:
        first = len(walk.pieces)
        before = _searched(walk, cursor)
        walk.index.before[key] = before, tuple(walk.pieces[first:])
        return before
    before, pieces = known
    walk.pieces.extend(pieces)
    return before


def _searched(walk: WalkContext, cursor: Cursor) -> Cursor | None:
    match cursor:
        case AtProgram():
            return before_program(walk, cursor)
        case AtOp():
            return at_operation(walk, cursor)
        case BeforeOp():
            return before_operation(walk, cursor)
        case AtCommand():
            return before_command(walk, cursor)


def last_rank(records: RunRecords) -> tuple[int, int]:
    """The SIP whose rank program ends last, the lowest of several, and that time."""
    last = (0, 0)
    for sip, programs in records.tables(PROGRAMS).items():
        ends = programs["end_ps"][programs["program"] == RANK_PROGRAM]
        end_ps = int(ends.max(initial=0))
        if end_ps > last[1]:
            last = sip, end_ps
    return last


def _last_answered(records: RunRecords) -> tuple[int, int, int]:
    """The SIP, the row and the end of the command answered last, the lowest SIP of several."""
    last = (0, NONE, 0)
    for sip, commands in records.tables(COMMANDS).items():
        if len(commands):
            row = int(commands["end_ps"].argmax())
            end_ps = commands["end_ps"].item(row)
            if end_ps > last[2]:
                last = sip, row, end_ps
    return last
