"""The queues of a run: which receive takes which message, and which slot waits for which credit.

Messages of a queue are sent and received in order, so the n-th receive takes the n-th message. Slot
n of a ring of d slots is reserved when slot n - d is free again.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kernbench.explain.check.clocks import START, CompletionClock, joined
from kernbench.explain.check.run_calls import CallRow

CallId = tuple[int, int]
"""The SIP and the number of a call."""


class _Freed(NamedTuple):
    """After `slots` slots are free: the clock of the last one, and that of those before it."""

    slots: int
    last: CompletionClock
    before: CompletionClock


class ReplayedQueue:
    """The messages of one queue; those that are sent and those that are received, in order."""

    def __init__(self) -> None:
        self._sends: list[tuple[int, CallId, CallRow]] = []
        self._receives: list[tuple[int, CallId, CallRow]] = []
        self._needs: dict[CallId, int] = {}
        self._message_of: dict[CallId, CallId] = {}
        self._receive_of: dict[CallId, CallId] = {}
        self._order: dict[CallId, int] = {}
        # Of receives that are complete, the clocks by which their slots are free.
        self._clocks: dict[int, tuple[CompletionClock, CompletionClock]] = {}
        self._next = self._free = 0
        self._freed: list[_Freed] = []
        self._before = START

    def add(self, sip: int, row: CallRow) -> None:
        """Add a call that sends or receives here."""
        rows = self._sends if row.operation.startswith("send") else self._receives
        rows.append((row.row, (sip, row.call), row))

    def connect(self) -> None:
        """All calls are added."""
        # A call has its row when its message has left, or has come: in the order of the ring.
        self._sends.sort()
        self._receives.sort()
        sent = 0
        for _, call, row in self._sends:
            sent += row.slots
            self._needs[call] = sent - row.depth
        for index, (_, call, _) in enumerate(self._receives):
            self._order[call] = index
            if index < len(self._sends):
                self._message_of[call] = self._sends[index][1]
                self._receive_of[self._sends[index][1]] = call

    def message_of(self, receive: CallId) -> CallId | None:
        """The call that sends what a call receives."""
        return self._message_of.get(receive)

    def receive_of(self, send: CallId) -> CallId | None:
        """The call that receives what a call sends."""
        return self._receive_of.get(send)

    def free(self, receive: CallId, last: CompletionClock, before: CompletionClock) -> None:
        """The slots of a message are free: the last one at a clock, those before it at another."""
        self._clocks[self._order[receive]] = last, before
        # Credits return in the order of the ring.
        while (clocks := self._clocks.pop(self._next, None)) is not None:
            slots = self._receives[self._next][2].slots
            self._next += 1
            self._free += slots
            of_last, of_others = clocks
            self._freed.append(
                _Freed(self._free, joined(self._before, of_last), joined(self._before, of_others))
            )
            self._before = self._freed[-1].last

    def credit(self, send: CallId) -> CompletionClock | None:
        """The clock of the credit that the last slot of a message waits for; None while there is
        no such credit.
        """
        need = self._needs[send]
        if need <= 0:
            return START
        if need > self._free:
            return None
        index = bisect_left(self._freed, need, key=lambda each: each.slots)
        freed = self._freed[index]
        return freed.last if freed.slots == need else freed.before


def queues_of(calls: Iterable[tuple[int, CallRow]]) -> dict[str, ReplayedQueue]:
    """The queues by name, of calls with their SIPs."""
    queues = defaultdict[str, ReplayedQueue](ReplayedQueue)
    for sip, row in calls:
        if row.queue:
            queues[row.queue].add(sip, row)
    for queue in queues.values():
        queue.connect()
    return queues
