"""The messages of a pipeline of collectives: how elements are cut, received ahead and loaded ahead.

A message stays in the slots of its ring until it is combined, or sent on and stored: it passes the
port of the TCM twice, in and out, and not four times. The kernels of NCCL read their receive
buffers in the same way.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Pointer, Value


class RingQueues(NamedTuple):
    """The directions to the previous and to the next position, the slots of a receive ring, the
    bytes of scratch for the receives, and as many for the own pieces, and the messages in a ring.
    """

    behind: str
    ahead: str
    n_slots: int
    slot_bytes: int
    room_bytes: int
    messages: int = 8


class MessageCut(NamedTuple):
    """Division of chunks into messages: elements of a message, messages of a step, messages that
    are sent on or stored and not yet released, receives posted ahead.
    """

    elements: int
    lag: int
    held: int
    posted: int
    in_place: bool

    @classmethod
    def of(cls, queues: RingQueues, chunk: int, itemsize: int) -> "MessageCut":
        """The cut of chunks of up to `chunk` elements."""
        slot = queues.slot_bytes
        # A chunk of several slots is cut in two messages or more, so that its steps overlap.
        slots = min(
            queues.room_bytes // (queues.messages * slot),
            queues.n_slots // 4,
            -(-chunk * itemsize // (2 * slot)),
        )
        nbytes = max(slots, 1) * slot
        # Less than a slot, where the scratch is small: two receives are posted at least.
        nbytes = max(min(nbytes, queues.room_bytes // 2 // 64 * 64), 64)
        in_ring = queues.n_slots // -(-nbytes // slot)
        posted = min(in_ring, queues.room_bytes // nbytes)
        # With a lag of C/2 and C/4 held messages, lag < C and held + 1 < C: the two conditions
        # under which no cycle of full rings arises (`ring_pipeline`). Less than four messages leave
        # no room for a pipeline: they are copied out of the ring.
        if posted < 4:
            return cls(nbytes // itemsize, lag=1, held=0, posted=2, in_place=False)
        return cls(nbytes // itemsize, posted // 2, posted // 4, posted, in_place=True)


class MessagesBehind:
    """The messages of the previous position; their receives are posted ahead."""

    def __init__(
        self, queues: RingQueues, cut: MessageCut, sizes: Sequence[int], dtype: DType
    ) -> None:
        self._direction, self._cut, self._sizes = queues.behind, cut, deque(sizes)
        self._posted = deque[tuple[tl.PendingResult, Value]]()
        self._held = deque[tuple[int, Value, Value, list[tl.PendingResult]]]()
        self._iteration = 0
        for _ in range(min(cut.posted, len(sizes))):
            self._post(tl.empty(cut.elements, dtype))

    def begin_iteration(self) -> None:
        """Release what has been held for its number of iterations."""
        self._iteration += 1
        while self._held and self._held[0][0] < self._iteration - self._cut.held:
            self._release_first()

    def take(self) -> tuple[Value, Value]:
        """Wait for the next message; its value, and the buffer of its receive."""
        pending, buffer = self._posted.popleft()
        value = pending.wait()
        assert value is not None
        return value, buffer

    def release(self, value: Value, buffer: Value) -> None:
        """A message was used: its slots are free, and its buffer serves a later receive."""
        if self._cut.in_place:
            tl.release(value)
        self._post(buffer)

    def hold(self, value: Value, buffer: Value, users: list[tl.PendingResult]) -> None:
        """Release a message later, when the operations in flight that use it have ended."""
        self._held.append((self._iteration, value, buffer, users))

    def finish(self) -> None:
        """Release all."""
        while self._held:
            self._release_first()

    def _release_first(self) -> None:
        _, value, buffer, users = self._held.popleft()
        for each in users:
            each.wait()
        self.release(value, buffer)

    def _post(self, buffer: Value) -> None:
        if self._sizes:
            target = buffer[: self._sizes.popleft()]
            receive = tl.recv_async(self._direction, dst_addr=target, in_place=self._cut.in_place)
            self._posted.append((receive, buffer))


class OwnPieces:
    """The own parts of chunks, loaded ahead into buffers that are used in turn."""

    def __init__(
        self, cut: MessageCut, pieces: Sequence[tuple[Pointer, int]], dtype: DType
    ) -> None:
        self._pieces = deque(pieces)
        self._free = deque[tuple[Value, list[tl.PendingResult]]](
            (tl.empty(cut.elements, dtype), []) for _ in range(min(2 * cut.lag, len(pieces)))
        )
        self._loads = deque[tuple[tl.PendingResult, Value, Value]]()
        for _ in range(cut.lag):
            self._load()

    def take(self) -> tuple[Value, Value]:
        """Wait for the next piece; its value, and its buffer."""
        load, value, buffer = self._loads.popleft()
        load.wait()
        return value, buffer

    def release(self, buffer: Value, users: list[tl.PendingResult]) -> None:
        """The buffer is free when the operations in flight that use it have ended."""
        self._free.append((buffer, users))
        self._load()

    def finish(self) -> None:
        """Wait for all that uses the buffers."""
        for _, users in self._free:
            for each in users:
                each.wait()

    def _load(self) -> None:
        if self._pieces:
            buffer, users = self._free.popleft()
            for each in users:
                each.wait()
            source, count = self._pieces.popleft()
            value = buffer[:count]
            self._loads.append((tl.load_async(source, count, out=value), value, buffer))


class CombinedPieces:
    """The own pieces, each combined with the next message of every one of `below`."""

    def __init__(
        self, own: OwnPieces, below: Sequence[MessagesBehind], op: ReduceOp | None
    ) -> None:
        self._own, self._below, self._op = own, below, op

    def take(self, *arrived: Value) -> tuple[Value, Value]:
        """Wait for the next piece; its value, combined with what has arrived, and its buffer."""
        value, buffer = self._own.take()
        messages = [each.take() for each in self._below]
        others = [message for message, _ in messages] + list(arrived)
        if others:
            value = self._combined(value, others)
        for each, message in zip(self._below, messages, strict=True):
            each.release(*message)
        return value, buffer

    def release(self, buffer: Value, users: list[tl.PendingResult]) -> None:
        """The buffer is free when the operations in flight that use it have ended."""
        self._own.release(buffer, users)

    def finish(self) -> None:
        """Wait for all that uses the buffers."""
        self._own.finish()

    def _combined(self, value: Value, others: Sequence[Value]) -> Value:
        op = self._op
        assert op is not None, "what arrives is combined"

        def combined(value: Value, *others: Value) -> Value:
            for other in others:
                value = op.combine(value, other)
            return value

        if len(others) == 1:
            return op.combine(value, others[0], out=value)
        # One stream: the vector engine fetches each operand once, and stores the result once.
        return tl.fused(combined, value, *others, out=value)


def combined_pieces(
    cut: MessageCut,
    pieces: Sequence[tuple[Pointer, int]],
    dtype: DType,
    op: ReduceOp | None,
    queues: RingQueues,
    below: Sequence[str],
) -> CombinedPieces:
    """The own `pieces` combined with messages from the directions `below`."""
    sizes = [count for _, count in pieces]
    messages = [MessagesBehind(queues._replace(behind=each), cut, sizes, dtype) for each in below]
    return CombinedPieces(OwnPieces(cut, pieces, dtype), messages, op)
