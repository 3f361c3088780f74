"""A software pipeline over a ring of ranks: reduce-scatter, all-gather, or one behind the other.

The chunk of each position moves round the ring in messages. All ranks run one sequence of
iterations: iteration i takes message i - lag of the previous position and sends message i.

    iteration       i                          i + 1                        i + 2
    DMA             load of a later own piece  load                         load
    arrivals        message i - lag            message i - lag + 1          ...
    vector engine   own piece + message        own piece + message
    link            message i                  message i + 1                ...
    DMA             store of a complete piece  store

So the latency of a step (route, addition) is paid once, and not once for every block, as long as
the link needs more time for the `lag` messages of a step. Every byte is read from memory once and
written once.

A message stays in the slots of its ring until it is combined, or sent on and stored: it passes the
port of the TCM twice, in and out, and not four times. The kernels of NCCL read their receive
buffers in the same way.

Deadlock freedom. Let the ring of a direction hold C messages. A rank releases message x in its
iteration x + lag + held + 1 at the latest, and waits in iteration i for two things only:

1. Message i - lag has arrived. The previous rank sends it in its iteration i - lag, into the slots
   of message i - lag - C, which this rank releases by its iteration i - C + held + 1.
2. Message i - held - 1, or an earlier one, has left. The next rank releases the slots of message
   i - held - 1 - C by its iteration i - C + lag.

With lag < C and held + 1 < C, both wait for iterations before i alone. So the earliest iteration
that any rank has not finished waits for nothing that does not come: no cycle of full rings arises.
A ring of less than four messages would leave no room for a pipeline. There each message is copied
out by a receive that was posted before: the buffers of two receives count like two more messages.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from runtime.ccl.index_algebra import ring_gather_step, ring_scatter_step
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
    """How chunks are cut: elements of a message, messages of a step, messages that are sent on or
    stored and not yet released, receives posted ahead.
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
        if posted < 4:
            return cls(nbytes // itemsize, lag=1, held=0, posted=2, in_place=False)
        return cls(nbytes // itemsize, posted // 2, posted // 4, posted, in_place=True)


class RingPass(NamedTuple):
    """The chunks of one pass: `size` of them, chunk c with `sizes[c]` elements.

    The own part of a chunk is at `source(c)`, a complete chunk goes to `target(c)`. With `op` the
    pass begins with a reduce-scatter, with `gathers` an all-gather follows. A reduce-scatter
    completes chunk i + 1 at position i, where the all-gather begins. An average is that of
    `contributions` elements, by default of one from each position.
    """

    position: int
    sizes: Sequence[int]
    source: Callable[[int], Pointer]
    target: Callable[[int], Pointer]
    dtype: DType
    op: ReduceOp | None
    gathers: bool
    contributions: int | None = None

    @property
    def size(self) -> int:
        """The number of positions."""
        return len(self.sizes)

    @property
    def reduce_steps(self) -> int:
        """The number of steps whose messages are combined."""
        return 0 if self.op is None else self.size - 1

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.reduce_steps + (self.size - 1 if self.gathers else 0)

    def chunks(self, step: int) -> tuple[int, int]:
        """(chunk sent, chunk received) in a step."""
        if step < self.reduce_steps:
            return ring_scatter_step(self.position, step, self.size)
        return ring_gather_step(self.position, step - self.reduce_steps, self.size)


def pass_round(ring: RingPass, queues: RingQueues) -> None:
    """Kernel: carry out a pass; there are two positions or more."""
    if max(ring.sizes):
        with tl.scratch():
            _PassProgram(ring, queues).run()


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


class _Iteration(NamedTuple):
    """A message of `size` elements of a chunk, from number `start` on, is received in a step; with
    step -1 an own one is sent.
    """

    step: int
    chunk: int
    start: int
    size: int


class _PassProgram:
    """A pass at work."""

    def __init__(self, ring: RingPass, queues: RingQueues) -> None:
        self._ring, self._ahead = ring, queues.ahead
        self._reduce_steps, self._steps = ring.reduce_steps, ring.steps
        self._cut = cut = MessageCut.of(queues, max(ring.sizes), ring.dtype.itemsize)
        self._iterations = [each for each in self._program() if each.size]
        # The program has the order of all: of the messages of each direction, and of the loads.
        received = [each.size for each in self._iterations if each.step >= 0]
        own = [
            (ring.source(each.chunk) + each.start, each.size)
            for each in self._iterations
            if each.step < self._reduce_steps
        ]
        self._arrivals = MessagesBehind(queues, cut, received, ring.dtype)
        self._own = OwnPieces(cut, own, ring.dtype)

    def run(self) -> None:
        """Carry out all iterations."""
        for each in self._iterations:
            self._arrivals.begin_iteration()
            if each.step < 0:
                self._begin(each)
            else:
                self._receive(each)
        self._arrivals.finish()
        self._own.finish()

    def _program(self) -> Iterator[_Iteration]:
        """All iterations, in order; of messages without elements as well."""
        lag, last_step = self._cut.lag, self._steps - 1
        count = -(-max(self._ring.sizes) // self._cut.elements)
        # Blocks of equal size: a short one would leave the link idle between its steps.
        blocks, before = -(-count // lag), range(0)
        edges = [block * count // blocks for block in range(blocks + 1)]
        for start, stop in [*pairwise(edges), (count, count)]:
            block = range(start, stop)
            # The last step of a block sends nothing, and the first step of the next one receives
            # nothing: they share their time.
            for index in range(max(len(before), len(block))):
                if index < len(before):
                    yield self._iteration(last_step, before[index])
                if index < len(block):
                    yield self._iteration(-1, block[index])
            for step in range(last_step):
                for number in block:
                    yield self._iteration(step, number)
            before = block

    def _iteration(self, step: int, number: int) -> _Iteration:
        """The iteration of message `number` of a chunk."""
        elements = self._cut.elements
        chunk = self._ring.chunks(0)[0] if step < 0 else self._ring.chunks(step)[1]
        start = number * elements
        size = max(min(elements, self._ring.sizes[chunk] - start), 0)
        return _Iteration(step, chunk, start, size)

    def _begin(self, iteration: _Iteration) -> None:
        """Send an own message, in the first step."""
        value, buffer = self._own.take()
        users = [tl.send_async(self._ahead, value)]
        if not self._reduce_steps:
            users.append(tl.store_async(self._target(iteration), value))
        self._own.release(buffer, users)

    def _receive(self, iteration: _Iteration) -> None:
        """Take a message of a step, combine it or store it, and send it in the next step."""
        ring, step = self._ring, iteration.step
        message, message_buffer = self._arrivals.take()
        value, own_buffer = message, None
        if ring.op is not None and step < self._reduce_steps:
            own, own_buffer = self._own.take()
            value = ring.op.combine(own, message, out=own)
            self._arrivals.release(message, message_buffer)
            if step == self._reduce_steps - 1:
                value = ring.op.finish(value, ring.contributions or ring.size, out=value)
        users = list[tl.PendingResult]()
        if step < self._steps - 1:
            users.append(tl.send_async(self._ahead, value))
        if step >= self._reduce_steps - 1:
            users.append(tl.store_async(self._target(iteration), value))
        if own_buffer is None:
            self._arrivals.hold(message, message_buffer, users)
        else:
            self._own.release(own_buffer, users)

    def _target(self, iteration: _Iteration) -> Pointer:
        return self._ring.target(iteration.chunk) + iteration.start
