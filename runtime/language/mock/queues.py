"""The queues of one PE of the mock runtime: receive rings with slots, and kernels that wait for
data and for free slots.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from greenlet import getcurrent

from runtime.core.coordinates import PeCoordinates
from runtime.core.dtypes import DType
from runtime.core.errors import KernelError, nearest
from runtime.core.program_grid import ALONE, GridPoint
from runtime.core.requests import QueuePair
from runtime.language.caller import kernel_line
from runtime.language.refusals import PENDING, PENDING_ADVICE, refuse_operators
from runtime.language.value import Value

Deliver = Callable[[bytearray], Value | None]


class _MockSlot(NamedTuple):
    """The content of one slot of a receive ring."""

    data: bytes
    dtype: DType


class MockReceive:
    """A posted receive, the `PendingResult` of `recv`; `direction` is None until a receive from any
    direction has its first slot.
    """

    def __init__(
        self,
        queues: "MockQueues",
        direction: str | None,
        nbytes: int,
        dtype: DType,
        deliver: Deliver,
        *,
        in_place: bool,
    ) -> None:
        self.direction, self.nbytes, self.dtype = direction, nbytes, dtype
        self.in_place, self.slots = in_place, 0
        self.line = kernel_line()
        self.target: Value | None = None
        """The value that it will be, unless it is in memory."""
        self.value: Value | None = None
        self.complete = False
        self._then: Callable[[], None] | None = None
        self._queues, self._deliver, self._data = queues, deliver, bytearray()

    def wait(self) -> Value | None:
        """Let other PEs run until the value is complete."""
        source = (
            "any (any peer)" if self.direction is None else self._queues.peer_text(self.direction)
        )
        self._queues.until(lambda: self.complete, f"recv {source}")
        return self.value

    def take(self, ring: deque[_MockSlot], slot_bytes: int) -> int:
        """Empty the slots of `ring` that belong to this value; return their number."""
        taken = 0
        while ring and len(self._data) < self.nbytes:
            slot = ring.popleft()
            taken += 1
            self.slots += 1
            expected = min(slot_bytes, self.nbytes - len(self._data))
            if len(slot.data) != expected or slot.dtype != self.dtype:
                arrived = f"{len(slot.data)} bytes of {slot.dtype.name}"
                raise self._queues.error(
                    f"recv from {self.direction} expects {expected} bytes of {self.dtype.name} in "
                    f"this slot, {arrived} came from {self._queues.peer(self)}",
                    self.line,
                )
            self._data += slot.data
        if len(self._data) == self.nbytes:
            self.value = self._deliver(self._data)
            self.complete = True
            if self._then is not None:
                self._then()
        return taken

    def then(self, completed: Callable[[], None]) -> None:
        """Call `completed` when the value is complete, or now."""
        if self.complete:
            completed()
        else:
            self._then = completed


refuse_operators(MockReceive, PENDING, PENDING_ADVICE)


class MockQueues:
    """The queues of one PE, with `peers` by direction; `sent` counts bytes by direction, `moves`
    slots filled and emptied.

    Sent messages wait in `_outgoing` for slots of the peer; `_held` counts the slots of the own
    rings whose values are in use, `_kept` has those values.
    """

    def __init__(self, coordinates: PeCoordinates, kernel: str) -> None:
        self.coordinates, self.kernel = coordinates, kernel
        self.program: GridPoint | None = None
        # The source line of commands, where it is not that of the code that runs.
        self.line = ""
        self.peers: dict[str, MockQueues] = {}
        self._backs: dict[str, str] = {}
        self._receiving: set[str] = set()
        self.n_slots = self.slot_bytes = 0
        self.sent: dict[str, int] = {}
        self.moves = 0
        self._wait: Callable[[], str] | None = None
        self._outgoing: dict[str, deque[_MockSlot]] = {}
        self._held: dict[str, int] = {}
        self._kept = list[tuple[Value, str, int]]()
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
        """Connect `direction` with a peer, whose direction `back` leads here; `receives` and
        `sends` are as seen from here.
        """
        self.peers[direction] = peer
        self.n_slots, self.slot_bytes = n_slots, slot_bytes
        if sends:
            self._backs[direction] = back
        if receives:
            self._receiving.add(direction)

    def send(self, direction: str, value: Value) -> None:
        """Fill slots of the peer's ring, each as soon as it is free; behind earlier messages."""
        target = self.peer_text(direction)
        left = self.send_async(direction, value)
        self.until(left, f"send {target}")

    def send_async(self, direction: str, value: Value) -> Callable[[], bool]:
        """The same in the background; returns whether the message has left, when it is called."""
        self.peer_text(direction)
        advice = "; a copy made with tl.cat has no gaps"
        self.check_gaps(f"send to {direction} of", value, advice)
        if direction not in self._backs:
            raise self.error(f"send to {direction}: the queues only receive from there")
        data, outgoing = value.tobytes(), self._outgoing.setdefault(direction, deque())
        slots = [
            _MockSlot(data[start : start + self.slot_bytes], value.dtype)
            for start in range(0, len(data), self.slot_bytes)
        ]
        outgoing.extend(slots)
        self.sent[direction] = self.sent.get(direction, 0) + len(data)
        self._fill_slots()
        # By identity: equal slots of other messages are equal tuples.
        return lambda: not slots or all(each is not slots[-1] for each in outgoing)

    def recv(
        self,
        direction: str | None,
        nbytes: int,
        dtype: DType,
        deliver: Deliver,
        *,
        in_place: bool = False,
    ) -> MockReceive:
        """Post a receive: it empties slots of a receive ring as they fill, and calls `deliver`
        after the last one. In place, the slots are free after the `release` of the value.
        """
        if direction is not None:
            self.peer_text(direction)
            if direction not in self._receiving:
                raise self.error(f"recv from {direction}: the queues only send there")
        elif not self._receiving:
            raise self.error("recv from any direction: no queue is installed here")
        receive = MockReceive(self, direction, nbytes, dtype, deliver, in_place=in_place)
        # An empty value has no slot; its receive is complete at once.
        if nbytes:
            self._receives.append(receive)
            self._take_arrivals()
        else:
            receive.take(deque(), 0)
        return receive

    def pair(self, direction: str) -> QueuePair:
        """The queue pair in a direction; rings have no addresses here."""
        return QueuePair(
            direction=direction,
            peer=self.peers[direction].coordinates,
            peer_direction=self._backs.get(direction, ""),
            rx_base=None,
            tx_base=None,
            n_slots=self.n_slots,
            slot_size=self.slot_bytes,
            credit_bytes=0,
            packet_bytes=0,
        )

    def check_gaps(self, operation: str, value: Value, advice: str) -> None:
        """`KernelError` for a view with gaps that does not fit a slot."""
        slot_bytes = self.slot_bytes
        if (
            value.data is not None
            and not value.data.flags.c_contiguous
            and value.nbytes > slot_bytes
        ):
            problem = f"it must fit a slot of {slot_bytes:,} bytes"
            view = f"a view with gaps, {value.nbytes:,} bytes"
            raise self.error(f"{operation} {view}: {problem}{advice}")

    def finish(self) -> None:
        """Wait for all sends and receives: a kernel ends when all its operations are complete."""
        while self._receives:
            self._receives[0].wait()
        for direction in self._outgoing:
            self.until(partial(self._has_sent, direction), f"send {self.peer_text(direction)}")
        self._held.clear()
        self._kept.clear()

    def release(self, value: Value) -> None:
        """Free the slots of a value that was received in place."""
        for number, (kept, direction, slots) in enumerate(self._kept):
            # By identity: `==` of values compares their elements.
            if kept is value:
                del self._kept[number]
                self._held[direction] -= slots
                self.moves += slots
                return
        raise self.error(f"release of {value!r}, which was not received in place")

    def has_room(self, direction: str) -> bool:
        """Whether a slot of the receive ring of a direction is free."""
        return len(self.ring(direction)) + self._held.get(direction, 0) < self.n_slots

    def ring(self, direction: str) -> deque[_MockSlot]:
        """The receive ring of a direction."""
        return self._rings.setdefault(direction, deque())

    def peer_text(self, direction: str) -> str:
        """A direction with its peer, for messages; `KernelError` if the direction has no peer."""
        if direction not in self.peers:
            raise self.error(
                f"no queue in direction {direction!r} is installed here"
                f"{nearest(direction, self.peers)}"
            )
        return f"{direction} ({self.peers[direction].coordinates})"

    @property
    def waits_for(self) -> str:
        """The operation for which the kernel waits; empty if it runs."""
        return "" if self._wait is None else f"kernel {self.kernel!r} {self._wait()}"

    def until(self, condition: Callable[[], bool], what: str | Callable[[], str]) -> None:
        """Let the other PEs run until `condition` holds; posted receives proceed meanwhile.

        `what` describes the wait, or makes its description when the run hangs.
        """
        # Arrivals are taken on every pass: posted receives free slots while the kernel waits for
        # another operation, as the hardware does.
        self._take_arrivals()
        while not condition():
            self._wait = what if callable(what) else lambda: what
            parent = getcurrent().parent
            assert parent is not None
            parent.switch()
            self._take_arrivals()
        self._wait = None

    def peer(self, receive: MockReceive) -> PeCoordinates:
        """The peer of a receive whose direction is chosen."""
        assert receive.direction is not None
        return self.peers[receive.direction].coordinates

    def error(self, problem: str, line: str = "") -> KernelError:
        """An error of the kernel at `line`, by default at its current line."""
        line = line or self.line or kernel_line()
        return KernelError(self.kernel, self.coordinates, line, problem, self.program)

    def check_alone(self, direction: str | None) -> None:
        """Refuse a message of a program of a grid."""
        if self.program is not None and direction is None:
            raise self.error(f"recv from any direction: {ALONE}")
        if self.program is not None:
            raise self.error(f"no queue in direction {direction!r}: {ALONE}")

    def _take_arrivals(self) -> None:
        """Each posted receive empties the slots that it needs, in the order of posting."""
        self._fill_slots()
        for receive in tuple(self._receives):
            # A receive from any direction is bound to the direction of its first slot.
            receive.direction = receive.direction or self._next_full_ring()
            if receive.direction is not None:
                taken = receive.take(self.ring(receive.direction), self.slot_bytes)
                self.moves += taken
                if receive.in_place:
                    self._hold(receive, receive.direction, taken)
            if receive.complete:
                self._receives.remove(receive)

    def _hold(self, receive: MockReceive, direction: str, taken: int) -> None:
        """The slots that a receive in place has taken are in use."""
        self._held[direction] = self._held.get(direction, 0) + taken
        if receive.complete and receive.value is not None:
            self._kept.append((receive.value, direction, receive.slots))

    def _fill_slots(self) -> None:
        """Move messages that have been sent to the slots of the peers that are free."""
        for direction, outgoing in self._outgoing.items():
            peer, back = self.peers[direction], self._backs[direction]
            while outgoing and peer.has_room(back):
                peer.ring(back).append(outgoing.popleft())
                self.moves += 1

    def _has_sent(self, direction: str) -> bool:
        return not self._outgoing[direction]

    def _next_full_ring(self) -> str | None:
        """Directions are served round-robin in alphabetical order, beginning after the last one
        served.
        """
        known = sorted(self.peers)
        turns = [each for each in known if each > self._last_served] + [
            each for each in known if each <= self._last_served
        ]
        for direction in turns:
            if self._rings.get(direction):
                self._last_served = direction
                return direction
        return None
