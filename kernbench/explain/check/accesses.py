"""Accesses to memory: the bytes that a thread reads or writes, and what is before that."""

from typing import NamedTuple

from kernbench.explain.check.block_tables import CallBlock
from kernbench.explain.check.clocks import CompletionClock, is_done
from kernbench.explain.check.run_calls import ATOMIC, CallRow, ProgramRow

NEVER = 1 << 62
"""The number of no call: of an operation for which no wait is recorded."""


class Accessor(NamedTuple):
    """A thread of a command: a kernel on a PE, a program of a grid, or the host.

    `key` is its number, `grid` the text of the program of the grid.
    """

    sip: int
    command: int
    key: int
    program: ProgramRow | None
    grid: str


class BarrierCounts(NamedTuple):
    """The barriers of a launch, and those of a cube, that a thread has called."""

    launch: int
    cube: int


NO_BARRIERS = BarrierCounts(0, 0)


class TrackedAccess(NamedTuple):
    """A call of `accessor` uses `block` of memory. It begins with all complete that `clock` has.

    The thread is complete with it from call `end` on; `flight` is the key of its operation in
    clocks. `barriers` are before it.
    """

    accessor: Accessor
    row: CallRow
    block: CallBlock
    writes: bool
    clock: CompletionClock
    end: int
    flight: int
    barriers: BarrierCounts

    @property
    def is_atomic(self) -> bool:
        """Whether it is one of an atomic operation, of which others are before or behind it."""
        return self.row.operation.startswith(ATOMIC)

    def is_before(self, other: "TrackedAccess") -> bool:
        """Whether it is complete when `other` begins, in every order of the run."""
        own, its = self.accessor, other.accessor
        if own.key == its.key:
            return self.end <= other.row.call
        clock, command = other.clock, (own.sip, own.command)
        return (
            clock.latest(command, own.key) >= self.end
            or clock.latest(command, self.flight) >= 0
            or is_done(clock, command)
        )


def flight_key(call: int) -> int:
    """The key of an operation in flight, which is no number of a thread."""
    return -1 - call
