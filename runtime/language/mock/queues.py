"""The queues of one PE of the mock runtime: receive rings with slots, and kernels that wait for slots and credits."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from greenlet import getcurrent

from runtime.core.coordinates import PeCoordinates
from runtime.core.dtypes import DType
from runtime.core.errors import KernelError, nearest
from runtime.language.caller import kernel_line
from runtime.language.value import Value

Deliver = Callable[[bytearray], Value | None]


class _MockSlot(NamedTuple):
    """What lies in one slot of a receive ring."""

    data: bytes
    dtype: DType


class MockReceive:
    """A value on its way out of a receive ring, the `PendingResult` of `recv`; `direction` is None until one was chosen."""

    def __init__(
        self,
        queues: "MockQueues",
        direction: str | None,
        nbytes: int,
        dtype: DType,
        deliver: Deliver,
    ) -> None:
        self.direction, self.nbytes, self.dtype = direction, nbytes, dtype
        self.line = kernel_line()
        self.value: Value | None = None
        self.done = False
        self._queues, self._deliver, self._data = queues, deliver, bytearray()

    def wait(self) -> Value | None:
        """Let other PEs run until the value is here."""
        where = "any (any peer)" if self.direction is None else self._queues.toward(self.direction)
        self._queues.until(lambda: self.done, f"recv {where}")
        return self.value

    def take(self, ring: deque[_MockSlot], slot_bytes: int) -> int:
        """Empty slots of `ring` as long as they belong to this value; returns how many."""
        taken = 0
        while ring and len(self._data) < self.nbytes:
            slot = ring.popleft()
            taken += 1
            expected = min(slot_bytes, self.nbytes - len(self._data))
            if len(slot.data) != expected or slot.dtype != self.dtype:
                came = f"{len(slot.data)} bytes of {slot.dtype.name} came from {self._queues.peer(self)}"
                problem = f"recv from {self.direction} expects {expected} bytes of {self.dtype.name} in this slot, {came}"
                raise self._queues.error(problem, self.line)
            self._data += slot.data
        if len(self._data) == self.nbytes:
            self.value = self._deliver(self._data)
            self.done = True
        return taken


class MockQueues:
    """`peers` by direction; `sent` counts bytes by direction, `moves` the slots that were filled and emptied."""

    def __init__(self, place: PeCoordinates, kernel: str) -> None:
        self.place, self.kernel = place, kernel
        self.peers: dict[str, MockQueues] = {}
        self._backs: dict[str, str] = {}
        self._receiving: set[str] = set()
        self.n_slots = self.slot_bytes = 0
        self.sent: dict[str, int] = {}
        self.moves = 0
        self.waits_for = ""
        self._rings: dict[str, deque[_MockSlot]] = {}
        self._receives: list[MockReceive] = []
        self._last_served = ""

    def join(
        self,
        direction: str,
        peer: "MockQueues",
        back: str,
        n_slots: int,
        slot_bytes: int,
        *,
        receives: bool = True,
        sends: bool = True,
    ) -> None:
        """Let `direction` lead to a peer, whose direction `back` leads here; one way only if it does not receive or send."""
        self.peers[direction] = peer
        self.n_slots, self.slot_bytes = n_slots, slot_bytes
        if sends:
            self._backs[direction] = back
        if receives:
            self._receiving.add(direction)

    def send(self, direction: str, data: bytes, dtype: DType) -> None:
        """Fill slots of the peer's ring, each as soon as it is free."""
        where = self.toward(direction)
        if direction not in self._backs:
            raise self.error(f"send to {direction}: the queues only receive from there")
        ring = self.peers[direction].ring(self._backs[direction])
        for done in range(0, len(data), self.slot_bytes):
            self.until(lambda: len(ring) < self.n_slots, f"send {where}")
            ring.append(_MockSlot(data[done : done + self.slot_bytes], dtype))
            self.moves += 1
        self.sent[direction] = self.sent.get(direction, 0) + len(data)

    def recv(
        self, direction: str | None, nbytes: int, dtype: DType, deliver: Deliver
    ) -> MockReceive:
        """Empty slots of an own ring, each as soon as it is full; the last one calls `deliver`."""
        if direction is not None:
            self.toward(direction)
            if direction not in self._receiving:
                raise self.error(f"recv from {direction}: the queues only send there")
        elif not self._receiving:
            raise self.error("recv from any direction: no queue is installed here")
        receive = MockReceive(self, direction, nbytes, dtype, deliver)
        if nbytes:
            self._receives.append(receive)
            self._take_arrivals()
        else:
            receive.take(deque(), 0)
        return receive

    def finish(self) -> None:
        """Wait for every value that was asked for and not waited for: a kernel ends after all that it started."""
        while self._receives:
            self._receives[0].wait()

    def ring(self, direction: str) -> deque[_MockSlot]:
        """The receive ring of a direction."""
        return self._rings.setdefault(direction, deque())

    def toward(self, direction: str) -> str:
        """A direction and who is there, for texts; `KernelError` where nobody is."""
        if direction not in self.peers:
            raise self.error(
                f"no queue in direction {direction!r} is installed here{nearest(direction, self.peers)}"
            )
        return f"{direction} ({self.peers[direction].place})"

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Let the other PEs run until `condition` holds; what was asked for asynchronously goes on meanwhile."""
        self._take_arrivals()
        while not condition():
            self.waits_for = f"kernel {self.kernel!r} {what}"
            parent = getcurrent().parent
            assert parent is not None
            parent.switch()
            self._take_arrivals()
        self.waits_for = ""

    def peer(self, receive: MockReceive) -> PeCoordinates:
        """Where the value of a receive comes from, once it has begun to come."""
        assert receive.direction is not None
        return self.peers[receive.direction].place

    def error(self, problem: str, line: str = "") -> KernelError:
        """What the kernel did wrong, at `line` or at the line at work."""
        return KernelError(self.kernel, self.place, line or kernel_line(), problem)

    def _take_arrivals(self) -> None:
        """Each request empties its ring as far as it can, in the order of asking: what is left is for the next one."""
        for receive in tuple(self._receives):
            receive.direction = receive.direction or self._next_full_ring()
            if receive.direction is not None:
                self.moves += receive.take(self.ring(receive.direction), self.slot_bytes)
            if receive.done:
                self._receives.remove(receive)

    def _next_full_ring(self) -> str | None:
        """Directions take turns in alphabetical order: the one after the last one served is first."""
        known = sorted(self.peers)
        turns = [way for way in known if way > self._last_served] + [
            way for way in known if way <= self._last_served
        ]
        for way in turns:
            if self._rings.get(way):
                self._last_served = way
                return way
        return None
