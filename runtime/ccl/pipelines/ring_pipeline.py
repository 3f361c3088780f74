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

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from runtime.ccl.index_algebra import ring_gather_step, ring_scatter_step
from runtime.ccl.pipelines.message_pipeline import (
    MessageCut,
    MessagesBehind,
    RingQueues,
    combined_pieces,
)
from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Pointer, Value

OVERLAPPED_BLOCKS = 2
"""The least number of blocks whose halves overlap. The first half of the first block and the second
half of the last one have nothing beside them."""


class RingPass(NamedTuple):
    """The chunks of one pass: `size` of them, chunk c with `sizes[c]` elements.

    The own part of a chunk is at `source(c)`, a complete chunk goes to `target(c)`. With `op` the
    pass begins with a reduce-scatter, with `gathers` an all-gather follows. A reduce-scatter
    completes chunk i + 1 at position i, where the all-gather begins. An average is that of
    `contributions` elements, by default of one from each position.

    Own pieces are combined with the messages that come from the directions `combined_from`, results
    are also sent to the directions `sent_to`. With `halves_overlap`, the reduce-scatter of a block
    runs beside the all-gather of the block before it, so that both kinds of messages flow at once.
    """

    position: int
    sizes: Sequence[int]
    source: Callable[[int], Pointer]
    target: Callable[[int], Pointer]
    dtype: DType
    op: ReduceOp | None
    gathers: bool
    contributions: int | None = None
    combined_from: Sequence[str] = ()
    sent_to: Sequence[str] = ()
    halves_overlap: bool = False

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

    def iterations(self, cut: MessageCut) -> list["Iteration"]:
        """All iterations that move a message, in order."""
        return [each for each in self._program(cut) if each.size]

    def _program(self, cut: MessageCut) -> Iterator["Iteration"]:
        """All iterations, those of messages without elements as well."""
        count = -(-max(self.sizes) // cut.elements)
        lag, period = cut.lag, self.steps
        if self.halves_overlap and lag > 1 and count >= OVERLAPPED_BLOCKS * lag:
            lag, period = lag // 2, self.reduce_steps
        # Blocks of equal size: a short one would leave the link idle between its steps.
        blocks = -(-count // lag)
        edges = [block * count // blocks for block in range(blocks + 1)]
        numbers = [range(*edge) for edge in pairwise(edges)]
        # A block enters its first step, -1, when the block before it is in step `period` - 1. The
        # last step sends nothing, and the first one receives nothing: they share their time.
        for turn in range((blocks - 1) * period + self.steps + 1):
            oldest = max(-(-(turn - self.steps) // period), 0)
            active = range(oldest, min(turn // period + 1, blocks))
            for index in range(max(len(numbers[block]) for block in active)):
                for block in active:
                    if index < len(numbers[block]):
                        step = turn - block * period - 1
                        yield self._iteration(cut, step, numbers[block][index])

    def _iteration(self, cut: MessageCut, step: int, number: int) -> "Iteration":
        """The iteration of message `number` of a chunk."""
        chunk = self.chunks(0)[0] if step < 0 else self.chunks(step)[1]
        start = number * cut.elements
        return Iteration(
            step=step,
            chunk=chunk,
            start=start,
            size=max(min(cut.elements, self.sizes[chunk] - start), 0),
            uses_own=step < self.reduce_steps,
            completes=step >= self.reduce_steps - 1,
        )


class Iteration(NamedTuple):
    """A message of `size` elements of a chunk, from number `start` on, is received in a step; with
    step -1 an own one is sent. It uses the own piece, or completes these elements, or both.
    """

    step: int
    chunk: int
    start: int
    size: int
    uses_own: bool
    completes: bool


def pass_round(ring: RingPass, queues: RingQueues) -> None:
    """Kernel: carry out a pass; there are two positions or more."""
    if max(ring.sizes):
        with tl.scratch():
            _PassProgram(ring, queues).run()


class _PassProgram:
    """A pass at work."""

    def __init__(self, ring: RingPass, queues: RingQueues) -> None:
        self._ring, self._ahead = ring, queues.ahead
        self._cut = cut = MessageCut.of(queues, max(ring.sizes), ring.dtype.itemsize)
        self._iterations = ring.iterations(cut)
        # The program has the order of all: of the messages of each direction, and of the loads.
        received = [each.size for each in self._iterations if each.step >= 0]
        own = [
            (ring.source(each.chunk) + each.start, each.size)
            for each in self._iterations
            if each.uses_own
        ]
        self._arrivals = MessagesBehind(queues, cut, received, ring.dtype)
        self._own = combined_pieces(cut, own, ring.dtype, ring.op, queues, ring.combined_from)

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

    def _begin(self, iteration: Iteration) -> None:
        """Send an own message, in the first step."""
        value, buffer = self._own.take()
        self._own.release(buffer, self._moved(iteration, value))

    def _receive(self, iteration: Iteration) -> None:
        """Take a message of a step, combine it or store it, and send it in the next step."""
        ring = self._ring
        message, message_buffer = self._arrivals.take()
        if ring.op is None or not iteration.uses_own:
            self._arrivals.hold(message, message_buffer, self._moved(iteration, message))
            return
        value, own_buffer = self._own.take(message)
        self._arrivals.release(message, message_buffer)
        if iteration.completes:
            value = ring.op.finish(value, ring.contributions or ring.size, out=value)
        self._own.release(own_buffer, self._moved(iteration, value))

    def _moved(self, iteration: Iteration, value: Value) -> list[tl.PendingResult]:
        """Send a message in the next step, and a complete one to where it belongs."""
        ring, users = self._ring, list[tl.PendingResult]()
        if iteration.step < ring.steps - 1:
            users.append(tl.send_async(self._ahead, value))
        if iteration.completes:
            users += [tl.send_async(each, value) for each in ring.sent_to]
            users.append(tl.store_async(ring.target(iteration.chunk) + iteration.start, value))
        return users
