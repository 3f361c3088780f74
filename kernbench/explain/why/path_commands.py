"""The critical path through commands of the host: their begin, their execution, their answer."""

from kernbench.explain.why.cursor import AtCommand, AtProgram, Cursor, WalkContext
from kernbench.explain.why.index import SipIndex
from kernbench.explain.why.parts import HOST_KINDS
from kernbench.explain.why.piece import PieceKind
from runtime.core.run_tables import NONE, RANK_PROGRAM, Cause

_SUBMISSION = "submission"


def answered_command(index: SipIndex, time_ps: int, after_ps: int) -> int:
    """The row of the command whose answer a rank received at a time and waited for, -1 for none."""
    for row in index.commands_by_end.at(0, time_ps):
        if index.commands["end_ps"].item(row) > after_ps:
            return row
    return NONE


def end_of_command(walk: WalkContext, sip: int, row: int, time_ps: int) -> AtProgram | AtCommand:
    """The answer of a command, and what it executed before."""
    index = walk.indices[sip]
    number = index.commands["command"].item(row)
    last = index.programs_of_command.last(number)
    begun_ps = index.commands["begun_ps"].item(row)
    if last != NONE and begun_ps <= index.programs["end_ps"].item(last) <= time_ps:
        ended_ps = index.programs["end_ps"].item(last)
        _piece(walk, sip, row, (ended_ps, time_ps), "report")
        return AtProgram(sip, index.programs["program"].item(last), ended_ps)
    _piece(walk, sip, row, (begun_ps, time_ps), "execution")
    return AtCommand(sip, row, begun_ps)


def before_command(walk: WalkContext, cursor: AtCommand) -> Cursor:
    """The predecessor of a command: an earlier one of its stream, or its way from the host."""
    index = walk.indices[cursor.sip]
    commands = index.commands
    after = commands["after"].item(cursor.row)
    departed_ps = commands["departed_ps"].item(cursor.row)
    if after != NONE:
        row = index.command_rows.item(after)
        # A command whose answer had come before this one left let nothing wait.
        if commands["end_ps"].item(row) == NONE or commands["end_ps"].item(row) > departed_ps:
            return end_of_command(walk, cursor.sip, row, cursor.time_ps)
    submitted_ps = commands["submitted_ps"].item(cursor.row)
    _piece(walk, cursor.sip, cursor.row, (departed_ps, cursor.time_ps), "way")
    _piece(walk, cursor.sip, cursor.row, (submitted_ps, departed_ps), _SUBMISSION)
    return AtProgram(cursor.sip, RANK_PROGRAM, submitted_ps)


def _piece(walk: WalkContext, sip: int, row: int, span: tuple[int, int], what: str) -> None:
    """A piece of a command, `way` or `execution` or `report`; the host has its submission."""
    commands = walk.indices[sip].commands
    name = commands.text("kind")[row]
    by_host = what == _SUBMISSION
    kind = (
        PieceKind.HOST if by_host else PieceKind.MEMORY if name in HOST_KINDS else PieceKind.LAUNCH
    )
    walk.add(
        *span,
        kind,
        "host" if by_host else "io.io_cpu",
        f"{what} of {name}",
        sip=sip,
        cause=Cause.COMMAND,
        line=commands.text("line")[row],
        command=commands["command"].item(row),
    )
