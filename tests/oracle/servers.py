"""The clock of the oracle, a server with a queue, and a memory with channels.

Of what happens at one time, that with the earlier cause comes first. So every event that causes
others, a *moment*, has a number, and the SimPy priority of a moment is the number of its cause.
The other events of SimPy, grants and ends of services, have lower numbers: those of one time are
over before the next moment of that time.
"""

from bisect import insort
from collections import deque
from collections.abc import Generator, Hashable
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import simpy
from simpy.events import NORMAL, EventPriority
from simpy.resources.resource import Request

from tests.oracle.routes import exact

Steps = Generator[simpy.Event, Any, Any]


class _Moment(simpy.Event):
    """A timeout of SimPy, with a cause."""

    def __init__(self, clock: "MomentClock", delay_ps: int, cause: int) -> None:
        super().__init__(clock)
        self._ok, self._value = True, None
        clock.schedule(self, EventPriority(NORMAL + 1 + cause), delay_ps)


class MomentClock(simpy.Environment):
    """Time in picoseconds; `cause` is the number of the present moment."""

    cause = 0

    @property
    def now_ps(self) -> int:
        """The present time."""
        return int(self.now)

    def moment(self, time_ps: int, cause: int | None = None) -> Steps:
        """Wait for a moment, which by default the present one causes."""
        yield _Moment(self, time_ps - self.now_ps, self.cause if cause is None else cause)
        self.cause += 1


class QueueServer:
    """Serves packets one after another: a link, or the port of a TCM."""

    def __init__(self, clock: MomentClock, gbs: float) -> None:
        self._clock, self._byte_ps = clock, 1000 / exact(gbs)
        self._queue = simpy.Resource(clock)

    def begin(self, nbytes: int, tail_ps: int) -> Steps:
        """Wait until the service of a packet begins, whose last byte arrives at `tail_ps`.

        Returns the time at which the last byte leaves; until then the server is busy.
        """
        turn = self._queue.request()
        yield turn
        left_ps = max(self._clock.now_ps + ceil(nbytes * self._byte_ps), tail_ps)
        self._clock.process(self._serve(turn, left_ps))
        return left_ps

    def _serve(self, turn: Request, left_ps: int) -> Steps:
        yield self._clock.timeout(left_ps - self._clock.now_ps)
        self._queue.release(turn)


class _QueuedPacket(NamedTuple):
    """A packet in the queue of a memory, sorted by its place; `shares` are bytes by channel."""

    place_ps: int
    number: int
    message: Hashable
    shares: dict[int, int]
    tail_ps: int
    writes: bool
    begins: simpy.Event


class ChannelMemory:
    """A controller with channels. Of each message, one packet at a time is in its queue.

    A packet that begins reserves all of its channels, so the end of its service is known then: it
    is the place of the next packet of its message.
    """

    def __init__(
        self, clock: MomentClock, channels: int, gbs: float | Fraction, penalty_ps: int
    ) -> None:
        self._clock, self._byte_ps, self._penalty_ps = clock, 1000 / exact(gbs), penalty_ps
        # Of each channel: it is reserved until then, and its last access was a write.
        self._free_ps = [0] * channels
        self._wrote: list[bool | None] = [None] * channels
        self._queue, self._numbers, self._wakes_ps = list[_QueuedPacket](), 0, 0
        # By message: the packets behind that in the queue, and the end of the latest service.
        self._behind = dict[Hashable, deque[_QueuedPacket]]()
        self._ends_ps = dict[Hashable, int]()

    def begin(
        self, message: Hashable, shares: dict[int, int], tail_ps: int, *, writes: bool
    ) -> Steps:
        """Wait until a packet begins, whose head is here and whose tail arrives at `tail_ps`.

        Returns when the last of its channels begins, and when all of its bytes are served.
        """
        packet = _QueuedPacket(0, 0, message, shares, tail_ps, writes, self._clock.event())
        if message in self._behind:
            self._behind[message].append(packet)
        else:
            self._place(packet)
            self._dispatch()
        return (yield packet.begins)

    def _place(self, packet: _QueuedPacket) -> None:
        """Give a packet its place: now, or when its predecessor in its message has been served."""
        place_ps = max(self._clock.now_ps, self._ends_ps.get(packet.message, 0))
        self._numbers += 1
        insort(self._queue, packet._replace(place_ps=place_ps, number=self._numbers))
        self._behind.setdefault(packet.message, deque())

    def _dispatch(self) -> None:
        """Begin each packet of which a channel is free, after those that it may not pass."""
        while first := next(filter(self._is_free, self._queue), None):
            turn, needs = [first], set(first.shares)
            for other in reversed(self._queue[: self._queue.index(first)]):
                if needs & set(other.shares):
                    turn.append(other)
                    needs |= set(other.shares)
            for packet in reversed(turn):
                self._serve(packet)
        frees_ps = [self._free_ps[channel] for packet in self._queue for channel in packet.shares]
        if frees_ps and (not self._wakes_ps or min(frees_ps) < self._wakes_ps):
            self._wakes_ps = min(frees_ps)
            self._clock.process(self._wake(self._wakes_ps))

    def _is_free(self, packet: _QueuedPacket) -> bool:
        return any(self._free_ps[channel] <= self._clock.now_ps for channel in packet.shares)

    def _serve(self, packet: _QueuedPacket) -> None:
        self._queue.remove(packet)
        start_ps = end_ps = 0
        for channel, share in packet.shares.items():
            if self._wrote[channel] is (not packet.writes):
                self._free_ps[channel] += self._penalty_ps
            begin_ps = max(self._clock.now_ps, self._free_ps[channel])
            left_ps = max(begin_ps + ceil(share * self._byte_ps), packet.tail_ps)
            self._wrote[channel], self._free_ps[channel] = packet.writes, left_ps
            start_ps, end_ps = max(start_ps, begin_ps), max(end_ps, left_ps)
        self._ends_ps[packet.message] = end_ps
        behind = self._behind.pop(packet.message)
        if behind:
            following = behind.popleft()
            self._behind[packet.message] = behind
            self._place(following)
        packet.begins.succeed((start_ps, end_ps))

    def _wake(self, time_ps: int) -> Steps:
        yield from self._clock.moment(time_ps)
        if self._wakes_ps == time_ps:
            self._wakes_ps = 0
            self._dispatch()
