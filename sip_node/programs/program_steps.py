"""Records a program and its steps: the intervals in which it is blocked by one call.

    program   |== load ==|== math add ==|=== wait ===|
    begin     |          |              |
    issued       |          |           |                  after the overhead of the command
    end                  |              |            |

Between steps a program takes no simulated time, so its steps tile it. What ended a step is the
operation that entered the op log last, if it is one of the same PE and has ended at this time: an
operation enters the log just before its completion resumes the program that waits for it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

from runtime.core.requests import QueuePair
from runtime.core.run_tables import NONE, PROGRAMS, RANK_PROGRAM, Cause
from runtime.language.caller import program_call
from sip_node.chip.completion import Completion
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from sip_node.programs.program import Call, Steps

RANK_THREAD = "rank"
"""`thread` of the rank program."""
_pack = PROGRAMS.packer.pack
_NO_CAUSE: str = Cause.NONE
_PEER = Cause.PEER


class Blocked(Protocol):
    """The wait of a program at the end of a call."""

    @property
    def operation(self) -> str:
        """The operation that the program called."""
        ...

    @property
    def cause(self) -> str:
        """The cause of the wait; read when the wait has ended."""
        ...

    @property
    def direction(self) -> str | None:
        """The direction of the peer that it waits for, if it is one."""
        ...


class Issued(NamedTuple):
    """A command, for which the program waits until its completion."""

    operation: str
    cause: str
    direction: str | None = None


_CAUSES = {
    "load": Cause.OPERAND,
    "store": Cause.OPERAND,
    "gather": Cause.OPERAND,
    "atomic": Cause.OPERAND,
    "barrier": Cause.PEER,
    "recv": Cause.SLOT,
}
"""Causes of waits for the ends of operations; all others are those of the math engine."""


@cache
def issued(operation: str) -> Issued:
    """A command of `operation`."""
    return Issued(operation, _CAUSES.get(operation, Cause.ENGINE))


class ProgramOrigin(NamedTuple):
    """The origin of a program: its thread on a PE, and the command that launched it."""

    kernel: str
    thread: str
    cube: int = NONE
    pe: int = NONE
    command: int = NONE
    line: str = ""


class ProgramSteps:
    """Records one program, which begins now, in a log with a recorder.

    `pair_of` is the queue pair of a direction, of a kernel that has queues, and `scratch_bytes` the
    bytes of scratch that the kernel uses, once it uses any.
    """

    def __init__(self, engine: Engine, log: OpLog, origin: ProgramOrigin) -> None:
        assert log.recorder is not None, "a run without records has no steps"
        assert log.steps is not None, "a log with a recorder has rows of steps"
        self._engine, self._log, self._origin = engine, log, origin
        self._recorder, self._rows = log.recorder, log.steps
        self._cube, self._pe = origin.cube, origin.pe
        self._program, self._begin_ps = RANK_PROGRAM, engine.now_ps
        if origin.thread != RANK_THREAD:
            self._program = log.recorder.new_program()
        self.pair_of: Callable[[str], QueuePair] | None = None
        self.scratch_bytes: Callable[[], int] | None = None

    @property
    def number(self) -> int:
        """The number of the program."""
        return self._program

    def line_of(self, line: str) -> int:
        """The text of `line`, or of the line of the kernel that runs."""
        rows = self._rows
        return rows.text(line) if line else rows.kernel_line()

    def new_step(self) -> int:
        """The number of a step that begins now."""
        return self._rows.new_step()

    def issued_by(self, step: int, call: Call) -> Call:
        """A call, whose operations are those of a step."""
        return self._issue, (step, *call)

    def _issue(
        self, step: int, start: Callable[..., Completion[Any]], args: tuple[object, ...]
    ) -> Completion[Any]:
        self._log.step = step
        return start(*args)

    def steps_of(
        self, step: int, blocked: Blocked, line: str, issue_ps: int, call: Call | None
    ) -> Steps[Any]:
        """Wait for `call`, or for an event, and record the step of a kernel.

        The commands of the call cost `issue_ps` of it. It is at `line`, or at that of the code that
        runs.
        """
        return self._block(step, blocked, self.line_of(line), issue_ps, call)

    def rank_step(self, cause: Cause, issue_ps: int, call: Call) -> Steps[Any]:
        """The same for the rank program, whose calls are those of its device."""
        line, called = program_call()
        blocked = Issued(called, cause)
        return self._block(self.new_step(), blocked, self._rows.text(line), issue_ps, call)

    def _block(
        self, step: int, blocked: Blocked, line: int, issue_ps: int, call: Call | None
    ) -> Steps[Any]:
        """Wait for a call, and record the step, which a statement in `line` calls."""
        begin_ps = self._engine.now_ps
        try:
            value = yield call
        # Not what deletes a program that waits at the end of a run.
        except Exception:
            self._ended(step, blocked, line, begin_ps, issue_ps, call)
            raise
        self._ended(step, blocked, line, begin_ps, issue_ps, call)
        return value

    def _ended(
        self,
        step: int,
        blocked: Blocked,
        line: int,
        begin_ps: int,
        issue_ps: int,
        call: Call | None,
    ) -> None:
        now_ps, rows = self._engine.now_ps, self._rows
        # A command that costs nothing may have issued operations, whose rows name the step.
        if now_ps != begin_ps or call is None:
            issued_ps, cause, released_by = begin_ps + issue_ps, _NO_CAUSE, NONE
            if now_ps > issued_ps:
                cause = blocked.cause
                if cause != _PEER:
                    released_by = self._log.ended_now(now_ps, self._cube, self._pe)
            direction, sip, cube, pe = blocked.direction or "", NONE, NONE, NONE
            if direction and self.pair_of is not None:
                sip, cube, pe = self.pair_of(direction).peer
            rows.add(
                step,
                self._program,
                rows.text(blocked.operation),
                line,
                begin_ps,
                issued_ps,
                now_ps,
                rows.text(cause),
                released_by,
                rows.text(direction),
                sip,
                cube,
                pe,
                self.scratch_bytes() if self.scratch_bytes is not None else 0,
            )

    def __enter__(self) -> None:
        """The program runs within the block."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # As above: a program that is deleted has not ended.
        if kind is not None and not issubclass(kind, Exception):
            return
        origin, text = self._origin, self._recorder.text
        self._recorder.add(
            PROGRAMS,
            _pack(
                self._program,
                origin.cube,
                origin.pe,
                text(origin.kernel),
                text(origin.thread),
                origin.command,
                text(origin.line),
                self._begin_ps,
                self._engine.now_ps,
            ),
        )
