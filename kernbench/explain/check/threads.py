"""The threads of a replay, with their operations in flight, and what follows their values."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from kernbench.explain.check.accesses import NO_BARRIERS, Accessor
from kernbench.explain.check.block_tables import CallBlock
from kernbench.explain.check.clocks import CompletionClock, with_known
from kernbench.explain.check.plain_commands import PlainCommands
from kernbench.explain.check.queues import CallId
from kernbench.explain.check.run_calls import CallRow


class ValueObserver(Protocol):
    """Follows the elements that the calls of a replay use."""

    def passes(self, sip: int, command: int, commands: PlainCommands) -> bool:
        """Whether it needs none of the calls of a plain command, whose writes it has noted."""
        ...

    def used(self, accessor: Accessor, row: CallRow, blocks: Sequence[CallBlock]) -> None:
        """A call uses blocks."""
        ...

    def sent(self, message: CallId, accessor: Accessor, row: CallRow) -> None:
        """A call sends a value."""
        ...

    def received(
        self, message: CallId, accessor: Accessor, row: CallRow, blocks: Sequence[CallBlock]
    ) -> None:
        """A call has received a message."""
        ...


class CallInFlight:
    """An operation in flight: its clock when it is complete."""

    def __init__(self, thread: "ReplayedThread", row: CallRow, clock: CompletionClock) -> None:
        self.thread, self.row, self.clock = thread, row, clock
        self.is_complete = False


class ReplayedThread:
    """A thread of a command, or the rank program, and how far its replay is: at `row`, None behind
    its last call. `rows` are its calls, some at a time.
    """

    def __init__(
        self, accessor: Accessor, rows: Iterator[list[CallRow]], clock: CompletionClock
    ) -> None:
        self.accessor, self.begun, self.clock = accessor, clock, clock
        self._chunks, self._rows = rows, iter(next(rows, ()))
        self.barriers = NO_BARRIERS
        self.in_flight: list[CallId] = []
        """The calls that send beside the thread, receive, or are atomic operations."""
        self.row: CallRow | None = next(self._rows, None)
        # Whether the call at `row` has begun, and waits.
        self.has_begun = False

    def advance(self) -> None:
        """Go on to the next call."""
        self.has_begun = False
        self.row = next(self._rows, None)
        if self.row is None:
            self._rows = iter(next(self._chunks, ()))
            self.row = next(self._rows, None)

    @property
    def exported(self) -> CompletionClock:
        """The clock of what comes after its calls until now."""
        assert self.row is not None, "a call of the thread is replayed"
        accessor = self.accessor
        command = accessor.sip, accessor.command
        return with_known(self.clock, command, accessor.key, self.row.call)
