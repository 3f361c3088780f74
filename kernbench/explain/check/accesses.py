"""Accesses to memory: who reads or writes which bytes, and when."""

from typing import NamedTuple

from kernbench.explain.check.clocks import Clock, is_done
from kernbench.explain.check.run_calls import Block, CallRow, ProgramRow

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


class Access(NamedTuple):
    """A call of `accessor` uses `block` of memory. It begins with all complete that `clock` has.

    The thread is complete with it from call `end` on; `flight` is the key of its operation in
    `known` of clocks. `barriers` counts those before it.
    """

    accessor: Accessor
    row: CallRow
    block: Block
    writes: bool
    clock: Clock
    end: int
    flight: int
    barriers: int

    def is_before(self, other: "Access") -> bool:
        """Whether it is complete when `other` begins, in every order of the run."""
        own, its = self.accessor, other.accessor
        if own.key == its.key:
            return self.end <= other.row.call
        clock = other.clock
        return (
            clock.known.get(own.key, -1) >= self.end
            or self.flight in clock.known
            or is_done(clock, own.sip, own.command)
        )


def flight_key(sip: int, call: int) -> int:
    """The key of an operation in flight, which is no number of a thread."""
    return -1 - (call << 16 | sip)
