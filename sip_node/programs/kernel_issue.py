"""Issues the commands of a kernel: PE_CPU and scheduler take their overhead, then an engine starts.

A kernel is sequential code. Every call of `tl` that needs an engine becomes one command:

    kernel      | call                                          | next line
    PE_CPU      |====== cpu.overhead ======|                    |
    scheduler                              |= sched.overhead =| |
    engine                                                    |=|===== DMA, math ... =====|

The kernel sleeps until the command completes. A load completes with the end of the transfer, an
asynchronous operation with its start: the kernel waits for its end later.
"""

from collections.abc import Callable
from typing import TypeVar

from runtime.core.simtime import ps_from_ns
from runtime.model.topology import Topology
from sip_node.chip.completion import Completion, completed
from sip_node.pdes.engine import Engine
from sip_node.programs.program import Program
from sip_node.programs.program_steps import Blocked, ProgramSteps, issued

_T = TypeVar("_T")


class CommandIssuer:
    """Issues commands for the kernel that runs as `program`. `issue_ps` is the cost of one.

    `steps` records what blocks the kernel, in a run with records.
    """

    def __init__(
        self, engine: Engine, topology: Topology, program: Program, steps: ProgramSteps | None
    ) -> None:
        self.engine, self._program, self._steps = engine, program, steps
        pe = topology.pe
        # The CPU issues a command and the scheduler dispatches it, one after the other: neither
        # runs ahead of the other within a kernel.
        self.issue_ps = ps_from_ns(pe.cpu.overhead_ns) + ps_from_ns(pe.scheduler.overhead_ns)
        self._translated_ps = self.issue_ps + ps_from_ns(pe.mmu.overhead_ns)

    def issue(self, operation: str, start: Callable[..., Completion[_T]], *args: object) -> _T:
        """Issue a command of `operation`, which calls `start(*args)`; block until its completion,
        return its value.
        """
        return self._issue(operation, self.issue_ps, start, args)

    def issue_translated(
        self, operation: str, start: Callable[..., Completion[_T]], *args: object
    ) -> _T:
        """The same for a command with virtual addresses, which the MMU translates first."""
        return self._issue(operation, self._translated_ps, start, args)

    def sleep(self, operation: str, time_ps: int) -> None:
        """Block for a time."""
        self._issue(operation, time_ps, completed, (None,))

    def wait(
        self,
        blocked: Blocked,
        start: Callable[..., Completion[_T]],
        *args: object,
        issue_ps: int = 0,
    ) -> _T:
        """Call `start(*args)`, from the event loop; block until its completion. A call may itself
        begin with the cost of a command, `issue_ps`.
        """
        if self._steps is None:
            return self._program.wait(start, *args)
        return self._steps.step(blocked, issue_ps, self._program.wait, start, *args)

    def _issue(
        self,
        operation: str,
        cost_ps: int,
        start: Callable[..., Completion[_T]],
        args: tuple[object, ...],
    ) -> _T:
        self.engine.at(self.engine.now_ps + cost_ps, self._program.call, start, args)
        if self._steps is None:
            return self._program.sleep()
        return self._steps.step(issued(operation), cost_ps, self._program.sleep)
