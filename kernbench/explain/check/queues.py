"""The queues of a run: which receive takes which message, and which slot waits for which credit.

Messages of a queue are sent and received in order, so the n-th receive takes the n-th message. Slot
n of a ring of d slots is reserved when slot n - d is free again.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kernbench.explain.check.clocks import START, CompletionClock, joined
from kernbench.explain.check.run_calls import MessageRow, SipCalls

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
        self._sends: list[CallId] = []
        self._receives: list[CallId] = []
        # The number of each call among the sends, or the receives.
        self._places: dict[CallId, int] = {}
        # The slot whose credit the last slot of each send waits for, and the slots of receives.
        self._needs: list[int] = []
        self._slots: list[int] = []
        self._sent = 0
        # Of receives that are complete, the clocks by which their slots are free.
        self._clocks: dict[int, tuple[CompletionClock, CompletionClock]] = {}
        self._next = self._free = self._freed_until = 0
        self._freed: list[_Freed] = []
        self._before = START

    def add(self, sip: int, message: MessageRow) -> None:
        """Add the next call that sends or receives here. A call has its row when its message has
        left, or has come: in the order of the ring.
        """
        call = sip, message.call
        if message.is_send:
            self._places[call] = len(self._sends)
            self._sends.append(call)
            self._sent += message.slots
            self._needs.append(self._sent - message.depth)
        else:
            self._places[call] = len(self._receives)
            self._receives.append(call)
            self._slots.append(message.slots)

    def message_of(self, receive: CallId) -> CallId | None:
        """The call that sends what a call receives."""
        place = self._places[receive]
        return self._sends[place] if place < len(self._sends) else None

    def receive_of(self, send: CallId) -> CallId | None:
        """The call that receives what a call sends."""
        place = self._places[send]
        return self._receives[place] if place < len(self._receives) else None

    def free(self, receive: CallId, last: CompletionClock, before: CompletionClock) -> None:
        """The slots of a message are free: the last one at a clock, those before it at another."""
        self._clocks[self._places[receive]] = last, before
        # Credits return in the order of the ring.
        while (clocks := self._clocks.pop(self._next, None)) is not None:
            self._free += self._slots[self._next]
            self._next += 1
            of_last, of_others = clocks
            freed = _Freed(
                self._free, joined(self._before, of_last), joined(self._before, of_others)
            )
            # A send waits for credits of slots before the last ones of the run.
            if self._needs and self._freed_until < self._needs[-1]:
                self._freed.append(freed)
            self._freed_until, self._before = self._free, freed.last

    def credit(self, send: CallId) -> CompletionClock | None:
        """The clock of the credit that the last slot of a message waits for; None while there is
        no such credit.
        """
        need = self._needs[self._places[send]]
        if need <= 0:
            return START
        if need > self._free:
            return None
        index = bisect_left(self._freed, need, key=lambda each: each.slots)
        freed = self._freed[index]
        return freed.last if freed.slots == need else freed.before


def queues_of(sips: Iterable[SipCalls]) -> dict[str, ReplayedQueue]:
    """The queues of a run by name."""
    queues = defaultdict[str, ReplayedQueue](ReplayedQueue)
    for calls in sips:
        for message in calls.messages():
            queues[message.queue].add(calls.sip, message)
    return queues
