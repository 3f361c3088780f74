"""Issues the commands of a kernel: PE_CPU and scheduler take their overhead, then an engine starts.

A kernel is sequential code. Every call of `tl` that needs an engine becomes one command:

    kernel      | call                                          | next line
    PE_CPU      |====== cpu.overhead ======|                    |
    scheduler                              |= sched.overhead =| |
    engine                                                    |=|===== DMA, math ... =====|

The kernel sleeps until the command completes. A load completes with the end of the transfer, an
asynchronous operation with its start: the kernel waits for its end later.

A command is a generator of `Steps`. The greenlet of a kernel blocks at each (`block`); a kernel
that runs from a command list goes on with the generators themselves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from runtime.core.run_tables import NONE
from runtime.core.simtime import ps_from_ns
from runtime.model.topology import Topology
from sip_node.chip.completion import Completion, completed
from sip_node.pdes.engine import Engine
from sip_node.programs.program import AnyProgram, Call, Program, Steps
from sip_node.programs.program_steps import Blocked, ProgramSteps, issued

_T = TypeVar("_T")


class CommandIssuer:
    """Issues commands for the kernel that runs as `program`. `issue_ps` is the cost of one.

    `steps` records what blocks the kernel, in a run with records. `line` is the source line of the
    command of a list; without a list, the line is that of the code that runs.
    """

    def __init__(
        self, engine: Engine, topology: Topology, program: AnyProgram, steps: ProgramSteps | None
    ) -> None:
        self.engine, self._program, self._steps = engine, program, steps
        self.line = ""
        pe = topology.pe
        # The CPU issues a command and the scheduler dispatches it, one after the other: neither
        # runs ahead of the other within a kernel.
        self.issue_ps = ps_from_ns(pe.cpu.overhead_ns) + ps_from_ns(pe.scheduler.overhead_ns)
        self._translated_ps = self.issue_ps + ps_from_ns(pe.mmu.overhead_ns)

    def block(self, steps: Steps[_T]) -> _T:
        """Carry out a command: block the greenlet of the kernel at each of its waits."""
        assert isinstance(self._program, Program), "a kernel without a greenlet cannot block"
        return self._program.carry_out(steps)

    def issuing(
        self, operation: str, start: Callable[..., Completion[_T]], *args: object
    ) -> Steps[_T]:
        """Issue a command of `operation`, which calls `start(*args)`, and wait for its completion;
        return its value.
        """
        return self._issuing(operation, self.issue_ps, start, args)

    def issuing_translated(
        self, operation: str, start: Callable[..., Completion[_T]], *args: object
    ) -> Steps[_T]:
        """The same for a command with virtual addresses, which the MMU translates first."""
        return self._issuing(operation, self._translated_ps, start, args)

    def sleeping(self, operation: str, time_ps: int) -> Steps[None]:
        """Wait for a time."""
        slept: Callable[[], Completion[None]] = partial(completed, None)
        return self._issuing(operation, time_ps, slept, ())

    def waiting(
        self,
        blocked: Blocked,
        start: Callable[..., Completion[_T]],
        *args: object,
        issue_ps: int = 0,
    ) -> Steps[_T]:
        """Call `start(*args)`, from the event loop, and wait for its completion. A call may itself
        begin with the cost of a command, `issue_ps`.
        """
        call, steps = (start, args), self._steps
        if steps is None:
            return _waited(call)
        step = steps.new_step()
        return steps.steps_of(step, blocked, self.line, issue_ps, steps.issued_by(step, call))

    def _issuing(
        self,
        operation: str,
        cost_ps: int,
        start: Callable[..., Completion[_T]],
        args: tuple[object, ...],
    ) -> Steps[_T]:
        call, step, steps = (start, args), NONE, self._steps
        if steps is not None:
            step = steps.new_step()
            call = steps.issued_by(step, call)
        self._program.call_at(self.engine, self.engine.now_ps + cost_ps, call)
        if steps is None:
            return _waited(None)
        return steps.steps_of(step, issued(operation), self.line, cost_ps, None)


def _waited(call: Call | None) -> Steps[Any]:
    return (yield call)
