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


def before_program(walk: WalkContext, at: AtProgram) -> Cursor | None:
    """The predecessor of a program at a time: its step until then, or its begin."""
    index = walk.indices[at.sip]
    step = index.step_of(at.program, at.time_ps)
    if step == NONE:
        return _begin(walk, at)
    if index.steps["end_ps"].item(step) > at.time_ps:
        return _request(walk, at, step)
    if at.program == RANK_PROGRAM:
        return _rank_step(walk, at, step)
    return _kernel_step(walk, at, step)


def _begin(walk: WalkContext, at: AtProgram) -> Cursor | None:
    """The begin of a program: the run for a rank, the launch for a kernel."""
    index, programs = walk.indices[at.sip], walk.indices[at.sip].programs
    if at.program == RANK_PROGRAM:
        walk.add(0, at.time_ps, PieceKind.HOST, "host", "rank program", sip=at.sip)
        return None
    row = index.program_rows.item(at.program)
    command = programs["command"].item(row)
    begin_ps = programs["begin_ps"].item(row)
    if command == NONE or begin_ps < at.time_ps:
        return walk.unexplained(at.sip, at.time_ps)
    command_row = index.command_rows.item(command)
    begun_ps = index.commands["begun_ps"].item(command_row)
    walk.add(
        begun_ps,
        at.time_ps,
        PieceKind.LAUNCH,
        "io.io_cpu",
        f"launch {programs.text('kernel')[row]}",
        sip=at.sip,
        cube=programs["cube"].item(row),
        pe=programs["pe"].item(row),
        cause=Cause.LAUNCH,
        line=programs.text("line")[row],
        command=command,
    )
    return AtCommand(at.sip, command_row, begun_ps)


def _request(walk: WalkContext, at: AtProgram, step: int) -> Cursor:
    """The part of a step before a request that it made: its wait so far and its command."""
    issued_ps = _issued_ps(walk.indices[at.sip], step)
    _own_piece(walk, at, step, issued_ps, at.time_ps)
    return _issue(walk, at, step, min(issued_ps, at.time_ps))


def _issue(walk: WalkContext, at: AtProgram, step: int, until_ps: int) -> Cursor:
    """The command that a step issues; the program precedes it."""
    index = walk.indices[at.sip]
    begin_ps = index.steps["begin_ps"].item(step)
    cube, pe = _place(index, at.program)
    kind, engine = (
        (PieceKind.HOST, "host") if at.program == RANK_PROGRAM else (PieceKind.ISSUE, "pe_cpu")
    )
    walk.add(
        begin_ps,
        until_ps,
        kind,
        engine if at.program == RANK_PROGRAM else component(cube, pe, engine),
        f"issue {index.steps.text('operation')[step]}",
        sip=at.sip,
        cube=cube,
        pe=pe,
        line=index.steps.text("line")[step],
        step=index.steps["step"].item(step),
    )
    return AtProgram(at.sip, at.program, begin_ps)


def _kernel_step(walk: WalkContext, at: AtProgram, step: int) -> Cursor | None:
    """A whole step: the operation that ended it, the last PE of a barrier, or itself."""
    index = walk.indices[at.sip]
    issued_ps, released_by = _issued_ps(index, step), index.steps["released_by"].item(step)
    if released_by != NONE:
        end_ps = index.ops["end_ps"].item(released_by)
        if issued_ps < end_ps <= at.time_ps:
            _own_piece(walk, at, step, end_ps, at.time_ps)
            return AtOp(OpOfSip(at.sip, released_by), step, end_ps)
    if index.steps.text("operation")[step] == _BARRIER:
        return _barrier(walk, at, step)
    _own_piece(walk, at, step, issued_ps, at.time_ps)
    return _issue(walk, at, step, issued_ps)


def _barrier(walk: WalkContext, at: AtProgram, step: int) -> Cursor:
    """The PE of the launch that came to the barrier last; messages go from it to this PE."""
    index = walk.indices[at.sip]
    last_program, last = index.last_at_barrier(at.program, step)
    arrived_ps = min(_issued_ps(index, last), at.time_ps)
    cube, pe = _place(index, last_program)
    walk.add(
        arrived_ps,
        at.time_ps,
        PieceKind.COMMUNICATION,
        component(cube, NONE, "m_cpu"),
        _BARRIER,
        sip=at.sip,
        cube=cube,
        pe=pe,
        cause=Cause.PEER,
        line=index.steps.text("line")[last],
        step=index.steps["step"].item(last),
    )
    return _issue(walk, AtProgram(at.sip, last_program, arrived_ps), last, arrived_ps)


def _rank_step(walk: WalkContext, at: AtProgram, step: int) -> Cursor | None:
    """A step of a rank program: the command that was answered, an operation of the host."""
    index = walk.indices[at.sip]
    command = answered_command(index, at.time_ps, _issued_ps(index, step))
    if command != NONE:
        return end_of_command(walk, at.sip, command, at.time_ps)
    released_by = index.steps["released_by"].item(step)
    if released_by != NONE:
        end_ps = index.ops["end_ps"].item(released_by)
        if index.steps["begin_ps"].item(step) < end_ps <= at.time_ps:
            _own_piece(walk, at, step, end_ps, at.time_ps)
            return AtOp(OpOfSip(at.sip, released_by), NONE, end_ps)
    begin_ps = index.steps["begin_ps"].item(step)
    _own_piece(walk, at, step, begin_ps, at.time_ps)
    return AtProgram(at.sip, at.program, begin_ps)


def _own_piece(walk: WalkContext, at: AtProgram, step: int, begin_ps: int, end_ps: int) -> None:
    """The time of a step that no operation has: a translation, the notification of an end."""
    if end_ps <= begin_ps:
        return
    index = walk.indices[at.sip]
    cube, pe = _place(index, at.program)
    operation = index.steps.text("operation")[step]
    part = part_of_operation(operation)
    kind = KIND_OF_PART.get(TimePart(part), PieceKind.ISSUE) if part >= 0 else PieceKind.ISSUE
    is_rank = at.program == RANK_PROGRAM
    walk.add(
        begin_ps,
        end_ps,
        PieceKind.HOST if is_rank else kind,
        "host" if is_rank else component(cube, pe, "pe_cpu"),
        operation,
        sip=at.sip,
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
