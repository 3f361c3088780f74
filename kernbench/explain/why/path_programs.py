"""The critical path through programs: which step, and what ended it."""

from kernbench.explain.why.cursor import AtCommand, AtOp, AtProgram, Cursor, WalkContext, component
from kernbench.explain.why.index import SipIndex
from kernbench.explain.why.parts import TimePart, part_of_operation
from kernbench.explain.why.path_commands import answered_command, end_of_command
from kernbench.explain.why.piece import PieceKind
from kernbench.explain.why.slots import OpOfSip
from runtime.core.run_tables import NONE, RANK_PROGRAM, Cause

KIND_OF_PART = {
    TimePart.COMPUTE: PieceKind.COMPUTE,
    TimePart.MEMORY: PieceKind.MEMORY,
    TimePart.COMMUNICATION: PieceKind.COMMUNICATION,
    TimePart.LAUNCH: PieceKind.LAUNCH,
}
_BARRIER = "barrier"


def before_program(walk: WalkContext, cursor: AtProgram) -> Cursor | None:
    """The predecessor of a program at a time: its step until then, or its begin."""
    index = walk.indices[cursor.sip]
    step = index.step_of(cursor.program, cursor.time_ps)
    if step == NONE:
        return _begin(walk, cursor)
    if index.steps["end_ps"].item(step) > cursor.time_ps:
        return _request(walk, cursor, step)
    if cursor.program == RANK_PROGRAM:
        return _rank_step(walk, cursor, step)
    return _kernel_step(walk, cursor, step)


def _begin(walk: WalkContext, cursor: AtProgram) -> Cursor | None:
    """The begin of a program: the run for a rank, the launch for a kernel."""
    index, programs = walk.indices[cursor.sip], walk.indices[cursor.sip].programs
    if cursor.program == RANK_PROGRAM:
        walk.add(0, cursor.time_ps, PieceKind.HOST, "host", "rank program", sip=cursor.sip)
        return None
    row = index.program_rows.item(cursor.program)
    command = programs["command"].item(row)
    begin_ps = programs["begin_ps"].item(row)
    if command == NONE or begin_ps < cursor.time_ps:
        return walk.unexplained(cursor.sip, cursor.time_ps)
    command_row = index.command_rows.item(command)
    begun_ps = index.commands["begun_ps"].item(command_row)
    walk.add(
        begun_ps,
        cursor.time_ps,
        PieceKind.LAUNCH,
        "io.io_cpu",
        f"launch {programs.text('kernel')[row]}",
        sip=cursor.sip,
        cube=programs["cube"].item(row),
        pe=programs["pe"].item(row),
        cause=Cause.LAUNCH,
        line=programs.text("line")[row],
        command=command,
    )
    return AtCommand(cursor.sip, command_row, begun_ps)


def _request(walk: WalkContext, cursor: AtProgram, step: int) -> Cursor:
    """The part of a step before a request that it made: its wait so far and its command."""
    issued_ps = _issued_ps(walk.indices[cursor.sip], step)
    _own_piece(walk, cursor, step, issued_ps, cursor.time_ps)
    return _issue(walk, cursor, step, min(issued_ps, cursor.time_ps))


def _issue(walk: WalkContext, cursor: AtProgram, step: int, until_ps: int) -> Cursor:
    """The command that a step issues; the program precedes it."""
    index = walk.indices[cursor.sip]
    begin_ps = index.steps["begin_ps"].item(step)
    cube, pe = _place(index, cursor.program)
    kind, engine = (
        (PieceKind.HOST, "host") if cursor.program == RANK_PROGRAM else (PieceKind.ISSUE, "pe_cpu")
    )
    walk.add(
        begin_ps,
        until_ps,
        kind,
        engine if cursor.program == RANK_PROGRAM else component(cube, pe, engine),
        f"issue {index.steps.text('operation')[step]}",
        sip=cursor.sip,
        cube=cube,
        pe=pe,
        line=index.steps.text("line")[step],
        step=index.steps["step"].item(step),
    )
    return AtProgram(cursor.sip, cursor.program, begin_ps)


def _kernel_step(walk: WalkContext, cursor: AtProgram, step: int) -> Cursor | None:
    """A whole step: the operation that ended it, the last PE of a barrier, or itself."""
    index = walk.indices[cursor.sip]
    issued_ps, released_by = _issued_ps(index, step), index.steps["released_by"].item(step)
    if released_by != NONE:
        end_ps = index.ops["end_ps"].item(released_by)
        if issued_ps < end_ps <= cursor.time_ps:
            _own_piece(walk, cursor, step, end_ps, cursor.time_ps)
            return AtOp(OpOfSip(cursor.sip, released_by), step, end_ps)
    if index.steps.text("operation")[step] == _BARRIER:
        return _barrier(walk, cursor, step)
    _own_piece(walk, cursor, step, issued_ps, cursor.time_ps)
    return _issue(walk, cursor, step, issued_ps)


def _barrier(walk: WalkContext, cursor: AtProgram, step: int) -> Cursor:
    """The PE of the launch that came to the barrier last; messages go from it to this PE."""
    index = walk.indices[cursor.sip]
    last_program, last = index.last_at_barrier(cursor.program, step)
    arrived_ps = min(_issued_ps(index, last), cursor.time_ps)
    cube, pe = _place(index, last_program)
    walk.add(
        arrived_ps,
        cursor.time_ps,
        PieceKind.COMMUNICATION,
        component(cube, NONE, "m_cpu"),
        _BARRIER,
        sip=cursor.sip,
        cube=cube,
        pe=pe,
        cause=Cause.PEER,
        line=index.steps.text("line")[last],
        step=index.steps["step"].item(last),
    )
    return _issue(walk, AtProgram(cursor.sip, last_program, arrived_ps), last, arrived_ps)


def _rank_step(walk: WalkContext, cursor: AtProgram, step: int) -> Cursor | None:
    """A step of a rank program: the command that was answered, an operation of the host."""
    index = walk.indices[cursor.sip]
    command = answered_command(index, cursor.time_ps, _issued_ps(index, step))
    if command != NONE:
        return end_of_command(walk, cursor.sip, command, cursor.time_ps)
    released_by = index.steps["released_by"].item(step)
    if released_by != NONE:
        end_ps = index.ops["end_ps"].item(released_by)
        if index.steps["begin_ps"].item(step) < end_ps <= cursor.time_ps:
            _own_piece(walk, cursor, step, end_ps, cursor.time_ps)
            return AtOp(OpOfSip(cursor.sip, released_by), NONE, end_ps)
    begin_ps = index.steps["begin_ps"].item(step)
    _own_piece(walk, cursor, step, begin_ps, cursor.time_ps)
    return AtProgram(cursor.sip, cursor.program, begin_ps)


def _own_piece(walk: WalkContext, cursor: AtProgram, step: int, begin_ps: int, end_ps: int) -> None:
    """The time of a step that no operation has: a translation, the notification of an end."""
    if end_ps <= begin_ps:
        return
    index = walk.indices[cursor.sip]
    cube, pe = _place(index, cursor.program)
    operation = index.steps.text("operation")[step]
    part = part_of_operation(operation)
    kind = KIND_OF_PART.get(TimePart(part), PieceKind.ISSUE) if part >= 0 else PieceKind.ISSUE
    is_rank = cursor.program == RANK_PROGRAM
    walk.add(
        begin_ps,
        end_ps,
        PieceKind.HOST if is_rank else kind,
        "host" if is_rank else component(cube, pe, "pe_cpu"),
        operation,
        sip=cursor.sip,
        cube=cube,
        pe=pe,
        cause=index.steps.text("cause")[step],
        line=index.steps.text("line")[step],
        step=index.steps["step"].item(step),
    )


def _issued_ps(index: SipIndex, step: int) -> int:
    return index.steps["issued_ps"].item(step)


def _place(index: SipIndex, program: int) -> tuple[int, int]:
    row = index.program_rows.item(program)
    return index.programs["cube"].item(row), index.programs["pe"].item(row)
