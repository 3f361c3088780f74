"""The transaction queue of a memory: its packets in the order in which its channels serve them.

The controller serves packet by packet, the messages in turn; a message is what one source sends or
reads under one tag. Of each message the first packet that has not begun has a place in the queue.
It takes its place when it arrives, or when the packet before it of its message has been served:

    A reads three packets, B one     t = 0    A0 begins; A1 follows at its end, t = 20
                                     t = 5    B0 arrives, before the place of A1
                                     t = 20   B0 begins, then A1, A2

A packet begins as soon as one channel that it needs is free, and then reserves each of its channels
when that is free. A packet may pass those in front of it with which it shares no channel; those
with which it shares one reserve before it. So no channel is idle while the next packet of a message
waits for it.
"""

from bisect import insort
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.memory.access import Access, MessageKey
from sip_node.pdes.engine import Engine

MOST_CHANNELS = 64
"""The channels of a memory whose queue is a compiled one, at most."""

MANY_MESSAGES = 256
"""Messages that the queue remembers before it drops those without a packet."""


class MemoryChannel(Protocol):
    """A channel of a memory, which serves one share at a time."""

    free_ps: int


class MemoryChannels(Protocol):
    """The channels of a memory. A share is what an access needs of one of them; false if nothing.

    Shares are opaque to the queue.
    """

    @property
    def channels(self) -> Sequence[MemoryChannel]:
        """The channels, in the order of the shares."""
        ...

    def shares_of(self, access: Access) -> Sequence[Any]:
        """The share of every channel in an access."""
        ...

    def reserve(
        self,
        shares: Sequence[Any],
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001 - the direction of an access, as in `Access`
    ) -> tuple[int, int, int]:
        """(begin of the first channel, begin of the last one, end) of shares from `head_ps` on."""
        ...


class _WaitingAccess(NamedTuple):
    """An access in the queue. Entries are ordered by their first two fields, which are unique.

    Bit i of `needs` is whether it needs channel i.
    """

    place_ps: int
    number: int
    needs: int
    access: Access
    shares: Sequence[Any]


class _MessageQueue(Struct):
    """A message, whose last packet that has begun ends at `end_ps`.

    `waits` is whether its next packet has a place in the queue; `later` come after that one.
    """

    later: deque[Access]
    end_ps: int = 0
    waits: bool = False


class ReferenceTransactionQueue:
    """The accesses to one memory that wait for its channels."""

    def __init__(self, engine: Engine, memory: MemoryChannels) -> None:
        self._engine, self._memory = engine, memory
        self._channels = memory.channels
        self._waiting: list[_WaitingAccess] = []
        self._messages: dict[MessageKey, _MessageQueue] = {}
        # The number of waiting accesses that need each channel.
        self._demand = [0] * len(self._channels)
        self._submitted = self._wake_ps = 0
        self._is_held = self._is_dispatching = False

    def submit(self, access: Access) -> None:
        """Queue an access whose head has arrived."""
        access.submitted_ps = self._engine.now_ps
        message = self._messages.get(access.message)
        if message is None:
            message = self._messages[access.message] = _MessageQueue(later=deque())
        if message.waits:
            message.later.append(access)
            return
        self._place(access, message)
        # An access that begins may submit the next one of its message.
        if not self._is_dispatching:
            self._dispatch()

    def hold(self) -> None:
        """Begin no access until `resume`."""
        self._is_held = True

    def resume(self) -> None:
        """Serve again after `hold`."""
        self._is_held = False
        self._dispatch()

    def _place(self, access: Access, message: _MessageQueue) -> None:
        """Give an access its place: now, or the end of the packet before it of its message."""
        shares = self._memory.shares_of(access)
        needs = 0
        for index, share in enumerate(shares):
            if share:
                needs |= 1 << index
                self._demand[index] += 1
        assert needs, f"an access to no bytes: {access}"
        message.waits = True
        self._submitted += 1
        place_ps = max(self._engine.now_ps, message.end_ps)
        insort(self._waiting, _WaitingAccess(place_ps, self._submitted, needs, access, shares))

    def _wake(self) -> None:
        # An earlier call may have made this one unnecessary.
        if self._engine.now_ps == self._wake_ps:
            self._wake_ps = 0
            self._dispatch()

    def _dispatch(self) -> None:
        """Begin all accesses that can begin now."""
        if self._is_held:
            return
        self._is_dispatching = True
        while self._waiting and not self._is_held:
            idle = self._idle()
            if not idle:
                break
            # A channel that is idle and needed is needed by one of them.
            index = 0
            while not self._waiting[index].needs & idle:
                index += 1
            self._begin(index)
        self._is_dispatching = False
        if self._waiting and not self._is_held:
            needed = zip(self._channels, self._demand, strict=True)
            self._wake_at(min(channel.free_ps for channel, demand in needed if demand))

    def _idle(self) -> int:
        """The channels, as bits, that are free while an access needs them."""
        now_ps, idle = self._engine.now_ps, 0
        for index, demand in enumerate(self._demand):
            if demand and self._channels[index].free_ps <= now_ps:
                idle |= 1 << index
        return idle

    def _begin(self, index: int) -> None:
        """Begin an access, after those in front of it that share channels with it."""
        chosen = [index]
        needs = self._waiting[index].needs
        for other in range(index - 1, -1, -1):
            if self._waiting[other].needs & needs:
                needs |= self._waiting[other].needs
                chosen.append(other)
        # From the back, so that the indices of the others stay valid.
        for waiting in reversed([self._waiting.pop(each) for each in chosen]):
            self._serve(waiting)

    def _serve(self, waiting: _WaitingAccess) -> None:
        for index, share in enumerate(waiting.shares):
            if share:
                self._demand[index] -= 1
        access, message = waiting.access, self._messages[waiting.access.message]
        train = access.train
        if train is not None:
            self._note_wait(waiting)
        first_ps, start_ps, end_ps = self._memory.reserve(
            waiting.shares, self._engine.now_ps, access.tail_ps, access.writes
        )
        if train is not None:
            train.at_channels(waiting.needs, access.submitted_ps, start_ps, end_ps)
        message.end_ps, message.waits = end_ps, False
        if message.later:
            self._place(message.later.popleft(), message)
        if len(self._messages) > MANY_MESSAGES + 2 * len(self._waiting):
            self._drop_messages()
        access.begun(first_ps, start_ps, end_ps)

    def _note_wait(self, waiting: _WaitingAccess) -> None:
        """The load of a channel over time includes the time for which an access waits here."""
        waited_ps = self._engine.now_ps - waiting.access.submitted_ps
        for channel, share in zip(self._channels, waiting.shares, strict=True):
            # A class of the user need not count.
            bins = getattr(channel, "bins", None) if share else None
            if bins is not None:
                bins.waited_ps = waited_ps

    def _drop_messages(self) -> None:
        """Drop the messages whose next packet would have the place of a first one."""
        now_ps = self._engine.now_ps
        self._messages = {
            key: message
            for key, message in self._messages.items()
            if message.waits or message.end_ps > now_ps
        }

    def _wake_at(self, time_ps: int) -> None:
        if not self._wake_ps or time_ps < self._wake_ps:
            self._wake_ps = time_ps
            self._engine.at(time_ps, self._wake)


def queue_of(engine: Engine, memory: MemoryChannels) -> "TransactionQueue":
    """The queue of a memory with any number of channels."""
    # The compiled queue has a bit for each channel in one machine word.
    many = len(memory.channels) > MOST_CHANNELS
    return (ReferenceTransactionQueue if many else TransactionQueue)(engine, memory)


if TYPE_CHECKING or not IS_COMPILED:
    TransactionQueue = ReferenceTransactionQueue
else:
    from sip_node.compiled.memory_queue import AccessQueue as TransactionQueue
