"""Atomic operations of a replay: memories have served them in one order, which orders more.

An operation that releases is before those that acquire on one of its elements and are served behind
it. The number of the service is in the row of the call. So a thread at such a call goes on when all
others wait, if its number is the least of those that wait for their turn.
"""

from heapq import heappop, heappush

from kernbench.explain.check.accesses import flight_key
from kernbench.explain.check.clocks import CompletionClock, joined, with_known
from kernbench.explain.check.run_calls import CallRow
from kernbench.explain.check.threads import ReplayedThread
from runtime.core.run_tables import BlockAccess as Use
from runtime.language.atomics import ORDERS


class AtomicTurns:
    """The threads that wait for their turn, and what has been released at each element."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, ReplayedThread]] = []
        self._released: dict[tuple[int, int, int], CompletionClock] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def next(self) -> ReplayedThread:
        """The thread whose turn it is."""
        return heappop(self._waiting)[2]

    def taken(self, thread: ReplayedThread, row: CallRow) -> CompletionClock | None:
        """The clock with which the call of a thread is complete, None before its turn has come. The
        call releases what is before it; what it acquires is before its wait.
        """
        if not thread.has_begun:
            heappush(self._waiting, (row.slots, thread.accessor.key, thread))
            return None
        acquires, releases = ORDERS[row.operation.split()[2]]
        accessor = thread.accessor
        command, known = (accessor.sip, accessor.command), self._released
        elements = [(*command, each) for each in _addresses(row)]
        behind, before = thread.clock, None
        for each in elements:
            # Elements of a block have one clock as a rule.
            released = known.get(each)
            if released is not None and released is not before:
                behind, before = joined(behind, released), released
        if releases:
            released = joined(thread.exported, behind)
            released = with_known(released, command, flight_key(row.call), 0)
            known.update(dict.fromkeys(elements, released))
        return behind if acquires else thread.clock


def _addresses(row: CallRow) -> list[int]:
    """The addresses of the elements of a call."""
    return [
        block.address + int(offset) + column
        for block in row.blocks
        if block.in_memory and block.access == Use.WRITE
        for offset in block.layout.offsets
        for column in range(0, block.layout.row_bytes, block.layout.item_bytes)
    ]
