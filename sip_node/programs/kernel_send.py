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
from typing import Any

from runtime.core.errors import KernelError
from runtime.core.run_tables import NONE, Cause
from runtime.core.trace import Operand
from runtime.language.value import Value
from sip_node.chip.completion import Completion, Continuation, completed
from sip_node.chip.mapping.strided_block import is_packed, item_bytes
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.queue_table import QueueState, SlotTrace
from sip_node.chip.records.op_log import OpLog
from sip_node.kernel import events
from sip_node.programs import kept_slots
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_wait import KernelQueues, KernelWait
from sip_node.programs.program import Steps


class SentMessage(Continuation):
    """A message of the elements `data` at `block`, of which the first `sent` bytes have left.

    `paused` completes when all have, or when a collective has reserved the queues. A message in the
    `background` has the source line of its call; its kernel does not wait for it. It is `starved`
    when a slot of it has waited for a credit. Its slots are operations of `step`.

    It continues at the end of each of its own commands, and stands for the wait of its kernel.
    """

    def __init__(
        self,
        queue: QueueState,
        block: Operand,
        data: bytes,
        nbytes: int,
        paused: Completion[None],
        background: str = "",
    ) -> None:
        self.queue, self.block, self.data, self.nbytes = queue, block, data, nbytes
        self.paused, self.background = paused, background
        self.operation, self.line, self.direction = "send", "", self.queue.direction
        self.sent = self.since_ps = 0
        self.item = item_bytes(block.dtype)
        self.starved = self.needs_credit = False
        self.step = NONE
        self.slot: Operand | None = None
        self.sends: Sends | None = None

    @property
    def cause(self) -> Cause:
        """The cause of its waits so far."""
        return Cause.CREDIT if self.starved else Cause.NONE

    def completion(self) -> Completion[None]:
        """`paused`, as a call that a program waits for."""
        return self.paused

    def resume(self, done: Any) -> None:
        """The command for a slot is issued, or a credit has come, or the slot has left."""
        assert self.sends is not None
        if done is None:
            self.sends.reserve(self)
        elif self.needs_credit:
            self.needs_credit = False
            self.sends.write(self, done.value)
        else:
            self.sends.left(self)


class Sends:
    """Sends the values of one kernel."""

    def __init__(
        self,
        issuer: CommandIssuer,
        wait: KernelWait,
        dma: PeDma,
        queues: KernelQueues,
        faults: KernelFaults,
        trace: SlotTrace | None,
        *,
        log: OpLog,
    ) -> None:
        self._issuer, self._wait, self._dma, self._log = issuer, wait, dma, log
        self._queues, self._faults, self._trace = queues, faults, trace
        self._engine, self._issue_ps, self._call = issuer.engine, issuer.issue_ps, faults.call
        self._table, self._excluded = queues.table, queues.excluded
        # By direction, the messages in the background; the first of each is on its way.
        self._background: dict[str, deque[SentMessage]] = {}

    def sending(self, direction: str, value: Value) -> Steps[None]:
        """Send slot by slot: reserve each at the peer, sleep while there is no credit, write it."""
        message = self._message(direction, value)
        if before := self._background.get(direction):
            self._wait.begin(self._queues.on_peer("send", direction))
            last = before[len(before) - 1]
            yield from self._issuer.waiting(last, last.completion)
            self._wait.end()
        while message.sent < message.nbytes:
            # Here and not in an event: the line of the error is that of the program.
            self._queues.check_peer("send", direction)
            message.paused = Completion()
            yield from self._issuer.waiting(message, self._begin, message, issue_ps=self._issue_ps)

    def starting(self, direction: str, value: Value, line: str) -> Steps[SentMessage]:
        """Send in the background; returns after the first command. The message is `paused` when its
        last byte has left the TCM. `line` is that of the call.
        """
        message = self._message(direction, value, line)
        if message.nbytes:
            yield from self._issuer.issuing("send_async", self._append, message)
        else:
            message.paused.complete(None)
        return message

    def _message(self, direction: str, value: Value, background: str = "") -> SentMessage:
        queue, block = self._queues.outgoing(direction), value.operand
        nbytes, slot_size = value.nbytes, queue.slot_size
        # A slot is one descriptor, and a part of a block with gaps is not rows at one pitch.
        if nbytes > slot_size and not is_packed(block):
            raise self._faults.error(
                f"send to {direction} of a view with gaps, {nbytes:,} bytes: it must fit "
                f"a slot of {slot_size:,} bytes; a copy made with tl.cat has no gaps"
            )
        return SentMessage(queue, block, value.tobytes(), nbytes, Completion(), background)

    def _append(self, message: SentMessage) -> Completion[None]:
        """The first command of a message in the background is issued."""
        message.sends, message.step = self, self._log.step
        waiting = self._background.setdefault(message.direction, deque())
        waiting.append(message)
        self._wait.leaving += 1
        # One message at a time in a direction: the receiver reads a ring in order.
        if len(waiting) == 1:
            self.reserve(message)
        return completed(None)

    def _next(self, message: SentMessage) -> None:
        """A message in the background has left, or has failed: begin the next one."""
        waiting = self._background[message.direction]
        waiting.popleft()
        self._wait.leaving -= 1
        if message.sent < message.nbytes:
            message.paused.fail(self._interrupted(message))
        else:
            message.paused.complete(None)
        if waiting:
            self.reserve(waiting[0])

    def _interrupted(self, message: SentMessage) -> KernelError:
        problem = f"send to {message.direction}: a collective has reserved the queues meanwhile"
        return self._faults.error(problem, message.background)

    def _begin(self, message: SentMessage) -> Completion[None]:
        message.sends, message.step = self, self._log.step
        self._issue(message)
        return message.paused

    def _issue(self, message: SentMessage) -> None:
        """Issue the command for the next slot."""
        message.since_ps = self._engine.now_ps
        if not message.background:
            self._wait.current = message
        events.resume_at(self._engine, message.since_ps + self._issue_ps, message)

    def reserve(self, message: SentMessage) -> None:
        """Reserve the next slot of a message at the peer, and write it."""
        address = message.queue.reserve()
        if address >= 0:
            self.write(message, address)
        else:
            message.needs_credit = message.starved = True
            message.queue.acquire().then(message)

    def write(self, message: SentMessage, address: int) -> None:
        """Write the next slot of a message, which is reserved at the peer."""
        if not message.background:
            self._wait.current = None
        start, content = message.sent, message.data
        nbytes = min(message.queue.slot_size, message.nbytes - start)
        source = kept_slots.slot_part(message.block, message.nbytes, message.item, start, nbytes)
        if nbytes != message.nbytes:
            content = content[start : start + nbytes]
        message.slot = slot = Operand(address, source.shape, source.dtype)
        packet_bytes = message.queue.queue_pair.packet_bytes
        self._log.step = message.step
        left = self._dma.push(source, slot, content, packet_bytes, self._call)
        left.then(message)

    def left(self, message: SentMessage) -> None:
        """The last byte of a slot has left the TCM."""
        if self._trace is not None:
            assert message.slot is not None
            self._trace.sent(message.queue.queue_pair, message.slot)
        message.sent += message.queue.slot_size
        # For every slot anew: a collective may have started on these queues in the meantime.
        if message.sent < message.nbytes and not (self._excluded and self._table.user):
            self._issue(message)
        elif message.background:
            self._next(message)
        else:
            message.paused.complete(None)
