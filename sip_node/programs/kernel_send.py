"""The sends of a running kernel: a message leaves slot by slot, each with a credit.

    PE_CPU      |= command =|                              |= command =|
    queue                   |-- waits for a credit --|
    DMA                                              |= slot =|

The kernel sleeps from the first command of a message to the end of its last slot: events alone
carry out the slots, so a message costs two switches of programs and not two for each slot. A
message in the background wakes it after the first command. Messages in one direction leave one
after the other, in the order of the calls.
"""

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.errors import KernelError
from runtime.core.run_tables import Cause
from runtime.core.trace import Operand
from runtime.language.value import Value
from sip_node.chip.completion import Completion, completed
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.queue_state import QueueState
from sip_node.chip.pe.slot_trace import SlotTrace
from sip_node.chip.strided_block import is_packed, item_bytes, nbytes_of, part_of
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_queues import KernelQueues
from sip_node.programs.kernel_wait import KernelWait


class ReferenceSentMessage(Struct):
    """A message of the elements `data` at `block`, of which the first `sent` bytes have left.

    `paused` completes when all have, or when a collective has reserved the queues. A message in the
    `background` has the source line of its call; its kernel does not wait for it. It is `starved`
    when a slot of it has waited for a credit.
    """

    queue: QueueState
    block: Operand
    data: bytes
    nbytes: int
    paused: Completion[None]
    background: str = ""
    sent: int = 0
    starved: bool = False

    @property
    def operation(self) -> str:
        """What the kernel called."""
        return "send"

    @property
    def cause(self) -> Cause:
        """What it has waited for so far."""
        return Cause.CREDIT if self.starved else Cause.NONE

    @property
    def direction(self) -> str:
        """The direction in which it leaves."""
        return self.queue.pair.direction


if TYPE_CHECKING or not IS_COMPILED:
    SentMessage = ReferenceSentMessage
else:
    from sip_node.compiled.slot_sends import SentMessage


class ReferenceSends:
    """Sends the values of one kernel."""

    def __init__(
        self,
        issuer: CommandIssuer,
        wait: KernelWait,
        dma: PeDma,
        queues: KernelQueues,
        faults: KernelFaults,
        trace: SlotTrace | None,
    ) -> None:
        self._issuer, self._wait, self._dma = issuer, wait, dma
        self._queues, self._faults, self._trace = queues, faults, trace
        # By direction, the messages in the background; the first of each is on its way.
        self._background: dict[str, deque[SentMessage]] = {}

    def send(self, direction: str, value: Value) -> None:
        """For every slot: reserve it at the peer, sleep while there is no credit, write it."""
        message = self._message(direction, value)
        if before := self._background.get(direction):
            self._wait.begin(self._wait.on_peer("send", direction))
            self._issuer.wait(before[-1], lambda: before[-1].paused)
            self._wait.end()
        while message.sent < message.nbytes:
            # Here and not in an event: the line of the error is that of the program.
            self._queues.check_peer("send", direction)
            message.paused = Completion()
            self._issuer.wait_issuing(message, self._begin, message)

    def start(self, direction: str, value: Value, line: str) -> SentMessage:
        """Send in the background; returns after the first command. The message is `paused` when its
        last byte has left the TCM. `line` is that of the call.
        """
        message = self._message(direction, value, line)
        if message.nbytes:
            self._issuer.issue("send_async", self._append, message)
        else:
            message.paused.complete(None)
        return message

    def _message(self, direction: str, value: Value, background: str = "") -> SentMessage:
        queue, block = self._queues.outgoing(direction), value.operand
        slot_size, nbytes = queue.pair.slot_size, value.nbytes
        if nbytes > slot_size and not is_packed(block):
            raise self._faults.error(
                f"send to {direction} of a view with gaps, {nbytes:,} bytes: it must fit "
                f"a slot of {slot_size:,} bytes; a copy made with tl.cat has no gaps"
            )
        return SentMessage(queue, block, value.tobytes(), nbytes, Completion(), background)

    def _append(self, message: SentMessage) -> Completion[None]:
        """The first command of a message in the background is issued."""
        waiting = self._background.setdefault(message.queue.pair.direction, deque())
        waiting.append(message)
        self._wait.leaving += 1
        if len(waiting) == 1:
            self._reserve(message)
        return completed(None)

    def _next(self, message: SentMessage) -> None:
        """A message in the background has left, or has failed: begin the next one."""
        waiting = self._background[message.queue.pair.direction]
        waiting.popleft()
        self._wait.leaving -= 1
        if message.sent < message.nbytes:
            message.paused.fail(self._interrupted(message))
        else:
            message.paused.complete(None)
        if waiting:
            self._reserve(waiting[0])

    def _interrupted(self, message: SentMessage) -> KernelError:
        direction = message.queue.pair.direction
        problem = f"send to {direction}: a collective has reserved the queues meanwhile"
        return self._faults.error(problem, message.background)

    def _begin(self, message: SentMessage) -> Completion[None]:
        self._issue(message)
        return message.paused

    def _issue(self, message: SentMessage) -> None:
        """Issue the command for the next slot."""
        if not message.background:
            self._wait.begin(self._wait.on_peer("send", message.queue.pair.direction))
        self._issuer.after_command(self._reserve, message)

    def _reserve(self, message: SentMessage) -> None:
        reserved = message.queue.acquire()
        message.starved = message.starved or not reserved.done
        reserved.then(partial(self._write, message))

    def _write(self, message: SentMessage, reserved: Completion[int]) -> None:
        """Write the next slot of the message, which is reserved at the peer."""
        if not message.background:
            self._wait.end()
        pair, start = message.queue.pair, message.sent
        size = min(pair.slot_size, message.nbytes - start)
        source = part_of(message.block, start, size)
        slot = Operand(reserved.value, source.shape, source.dtype)
        content = message.data[start : start + nbytes_of(source)]
        self._dma.push(source, slot, content, pair.packet_bytes, self._faults.call).then(
            partial(self._left, message, slot)
        )

    def _left(self, message: SentMessage, slot: Operand, _: Completion[bytes]) -> None:
        """The last byte of a slot has left the TCM."""
        if self._trace is not None:
            self._trace.sent(message.queue.pair, slot)
        message.sent += message.queue.pair.slot_size
        # For every slot anew: a collective may have started on these queues in the meantime.
        if message.sent < message.nbytes and not self._queues.reserved:
            self._issue(message)
        elif message.background:
            self._next(message)
        else:
            message.paused.complete(None)


if TYPE_CHECKING or not IS_COMPILED:
    Sends = ReferenceSends
else:
    from sip_node.compiled.slot_sends import SlotSends

    class Sends(SlotSends, ReferenceSends):
        """The reference, whose slots are in C."""

        def __init__(
            self,
            issuer: CommandIssuer,
            wait: KernelWait,
            dma: PeDma,
            queues: KernelQueues,
            faults: KernelFaults,
            trace: SlotTrace | None,
        ) -> None:
            super().__init__(issuer, wait, dma, queues, faults, trace)
            self.bind(
                engine=issuer.engine,
                issue_ps=issuer.issue_ps,
                wait=wait,
                dma=dma,
                queues=queues,
                call=faults.call,
                trace=trace,
                part_of=part_of,
                item_bytes=item_bytes,
            )
