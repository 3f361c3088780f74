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

from collections import deque
from typing import Any

from sip_node.chip.memory.access import Access, AccessService, MessageKey
from sip_node.chip.memory.memory_channels import MemoryChannels, Shares, channels_of
from sip_node.kernel import exact
from sip_node.kernel.containers.int_array import IntArray
from sip_node.pdes.engine import Engine

_MANY_MESSAGES = 256
"""Messages that the queue remembers before it drops those without a packet."""
_DISPATCH = 0


class MessageQueue:
    """A message, whose last packet that has begun ends at `end_ps`.

    `waits` is whether its next packet has a place in the queue; `later` come after that one.
    """

    later: deque[Access] | None
    end_ps: int
    waits: bool


class WaitingAccess:
    """An access in the queue."""

    access: Access
    message: MessageQueue
    place_ps: int
    shares: Shares


class AccessQueue(AccessService):
    """The accesses to one memory that wait for its channels."""

    def __init__(self, engine: Engine, memory: MemoryChannels) -> None:
        self.join(engine)
        self.channels = channels_of(memory)
        # By place; of equal places, the access that was submitted first is in front.
        self.waiting: list[WaitingAccess] = []
        self._messages: dict[MessageKey, MessageQueue] = {}
        # The number of waiting accesses that need each channel, and the last call of `_begin` that
        # has begun an access to it.
        self._demand, self._begun, self._begins = IntArray(), IntArray(), 0
        for _ in self.channels.channels:
            self._demand.append(0)
            self._begun.append(0)
        self.wake_ps = self.turns = 0
        self.is_held = self._is_dispatching = False

    def submit(self, access: Access) -> None:
        """Queue an access whose head has arrived."""
        access.submitted_ps = self.engine.now_ps
        message = self._messages.get(access.message)
        if message is None:
            message = self._messages[access.message] = MessageQueue.__new__(MessageQueue)
            message.later, message.end_ps, message.waits = None, 0, False
        elif message.waits:
            if message.later is None:
                message.later = deque()
            message.later.append(access)
            return
        self._place(access, message)
        # An access that begins may submit the next one of its message.
        if not self._is_dispatching:
            self._dispatch()

    def hold(self) -> None:
        """Begin no access until `resume`."""
        self.is_held = True

    def resume(self) -> None:
        """Serve again after `hold`."""
        self.is_held = False
        self._dispatch()

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - it has one step
        """A channel is free."""
        self.turns += 1
        # An earlier call may have made this one unnecessary.
        if self.engine.now_ps == self.wake_ps:
            self.wake_ps = 0
            self._dispatch()

    def _place(self, access: Access, message: MessageQueue) -> None:
        """Give an access its place: now, or the end of the packet before it of its message."""
        # A message has one packet in the queue, however many have arrived: k messages share a
        # memory packet by packet, and none gains by its length.
        place_ps = max(self.engine.now_ps, message.end_ps)
        waiting = WaitingAccess.__new__(WaitingAccess)
        waiting.access, waiting.message, waiting.place_ps = access, message, place_ps
        waiting.shares = self.channels.split(access)
        assert waiting.shares.needed.size, f"an access to no bytes: offset {access.offset}"
        self._count(waiting.shares, 1)
        message.waits = True
        # Behind all accesses with the same place, which were submitted before.
        index = len(self.waiting)
        while index:
            before = self.waiting[index - 1]
            if before.place_ps <= place_ps:
                break
            index -= 1
        self.waiting.insert(index, waiting)

    def _dispatch(self) -> None:
        """Begin all accesses that can begin now."""
        if self.is_held:
            return
        self._is_dispatching = True
        free_ps = self._free_ps()
        while free_ps <= self.engine.now_ps and not self.is_held:
            # A channel that is free and needed is needed by one of them.
            index = 0
            waiting = self.waiting[0]
            while not self._is_ready(waiting.shares):
                index += 1
                waiting = self.waiting[index]
            self._begin(index)
            free_ps = self._free_ps()
        self._is_dispatching = False
        if self.waiting and not self.is_held and (not self.wake_ps or free_ps < self.wake_ps):
            self.wake_ps = free_ps
            self.later(free_ps, _DISPATCH, None)

    def _free_ps(self) -> int:
        """The time at which the first needed channel is free; `NEVER_PS` if no access waits."""
        first_ps, demand = exact.NEVER_PS, self._demand
        for index in range(demand.size):
            if demand.values[index]:
                free_ps = self.channels.free_ps(index)
                if free_ps < first_ps:  # noqa: PLR1730 - faster than min()
                    first_ps = free_ps
        return first_ps

    def _is_ready(self, shares: Shares) -> bool:
        """Whether a channel that an access needs is free."""
        needed, now_ps = shares.needed, self.engine.now_ps
        for place in range(needed.size):
            # One free channel is enough: the access reserves the others for the times when they are
            # free.
            if self.channels.free_ps(needed.values[place]) <= now_ps:
                return True
        return False

    def _begin(self, index: int) -> None:
        """Begin an access, after those in front of it that share channels with it."""
        waiting = self.waiting.pop(index)
        if not index:
            self._serve(waiting)
            return
        self._begins += 1
        self._note_begun(waiting.shares)
        chosen = [waiting]
        for place in range(index - 1, -1, -1):
            other = self.waiting[place]
            # First come, first served on each channel: what is in front and needs a channel that
            # begins now keeps its place there.
            if self._needs_begun(other.shares):
                self._note_begun(other.shares)
                chosen.append(self.waiting.pop(place))
        for waiting in reversed(chosen):
            self._serve(waiting)

    def _needs_begun(self, shares: Shares) -> bool:
        needed, begun = shares.needed, self._begun
        for place in range(needed.size):
            if begun.values[needed.values[place]] == self._begins:
                return True
        return False

    def _note_begun(self, shares: Shares) -> None:
        needed, begun = shares.needed, self._begun
        for place in range(needed.size):
            begun.values[needed.values[place]] = self._begins

    def _count(self, shares: Shares, change: int) -> None:
        """An access that needs these channels is added to those that wait, or removed."""
        needed, demand = shares.needed, self._demand
        for place in range(needed.size):
            demand.values[needed.values[place]] += change

    def _serve(self, waiting: WaitingAccess) -> None:
        access, message, channels = waiting.access, waiting.message, self.channels
        self._count(waiting.shares, -1)
        now_ps, train = self.engine.now_ps, access.train
        waited_ps = now_ps - access.submitted_ps if train is not None else 0
        first_ps = channels.serve(waiting.shares, now_ps, access.tail_ps, access.writes, waited_ps)
        start_ps, end_ps = channels.start_ps, channels.end_ps
        if train is not None:
            train.at_channels(waiting.shares.needed, access.submitted_ps, start_ps, end_ps)
        message.end_ps, message.waits = end_ps, False
        if message.later:
            self._place(message.later.popleft(), message)
        if len(self._messages) > _MANY_MESSAGES + 2 * len(self.waiting):
            self._drop_messages()
        access.begun(first_ps, start_ps, end_ps)

    def _drop_messages(self) -> None:
        """Drop the messages whose next packet would have the place of a first one."""
        now_ps, messages = self.engine.now_ps, self._messages
        self._messages = {}
        for key, message in messages.items():
            if message.waits or message.end_ps > now_ps:
                self._messages[key] = message
