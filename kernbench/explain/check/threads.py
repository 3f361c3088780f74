"""The threads of a replay, with their operations in flight, and what follows their values."""

from collections.abc import Sequence
from typing import Protocol

from kernbench.explain.check.accesses import Accessor
from kernbench.explain.check.clocks import CompletionClock, with_known
from kernbench.explain.check.queues import CallId
from kernbench.explain.check.run_calls import CallBlock, CallRow


class ValueObserver(Protocol):
    """Follows the elements that the calls of a replay use."""

    def used(self, accessor: Accessor, row: CallRow, blocks: Sequence[CallBlock]) -> None:
        """A call uses blocks."""
        ...

    def sent(self, message: CallId, accessor: Accessor, blocks: Sequence[CallBlock]) -> None:
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
    """A thread of a command, or the rank program, and how far its replay is."""

    def __init__(self, accessor: Accessor, rows: Sequence[CallRow], clock: CompletionClock) -> None:
        self.accessor, self.rows, self.begun, self.clock = accessor, rows, clock, clock
        self.index = self.barriers = 0
        # Whether the call at `index` has begun, and waits.
        self.has_begun = False

    @property
    def exported(self) -> CompletionClock:
        """The clock of what comes after its calls until now."""
        return with_known(self.clock, self.accessor.key, self.rows[self.index].call)
