"""The receives of a running kernel: each copies the slots of one message out of a ring.

A message is cut into slots of the ring's slot size. A receive reads one slot after the other, and
between two of them the PE_CPU issues a command, as it would for a loop over slots in the kernel:

    state          event                                     next state
    -------------  ----------------------------------------  -------------
    POSTED         a direction that it accepts has a full    READING
                   slot, and no other receive reads there
    READING        the slot is copied, and more follow       ISSUING
    READING        the last slot is copied                   COMPLETE
    ISSUING        command issued; the next slot is full     READING
    ISSUING        command issued; the next slot is empty    AWAITING_SLOT
    AWAITING_SLOT  the next slot arrives                     READING
    POSTED         in place, without a wrap: the first slot  KEEPING
    KEEPING        all slots have arrived                    COMPLETE
    POSTED, ISSUING, AWAITING_SLOT, KEEPING
                   the slot is not what the receive expects  FAILED

Every slot that is copied returns its credit to the sender at once, so a message may be longer than
the ring.

A receive in place copies nothing: its value stays in the slots, as the operand of later commands,
until the kernel releases it. That needs a ring in the own TCM, and slots that follow each other
without a wrap round the end of the ring; otherwise the message is copied as by any other receive.
Credits return in the order of the slots, so a slot that is copied behind one that is kept returns
its credit when that one is released.

A receive accepts one direction or any. Messages match the receives that accept their direction in
the order in which these were posted (MPI's rule, so that a kernel is deterministic); a receive from
any direction takes full directions in turn, so that no peer starves. A receive keeps its direction
until its last slot is copied: slots of two messages are never mixed. A receive that has failed
keeps its direction to the end, so that the rest of its message matches no other receive.
"""

from collections import deque
from collections.abc import Sequence
from enum import IntEnum, auto
from typing import Any

from runtime.core.dtypes import DType
from runtime.core.errors import KernbenchError
from runtime.core.requests import Transfer
from runtime.core.run_tables import NONE
from runtime.core.trace import Operand
from sip_node.chip.completion import AnyCompletion, Completion, Continuation, all_of
from sip_node.chip.mapping.strided_block import is_packed, nbytes_of
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.queue_table import QueueState, QueueTable, Slot, SlotTrace
from sip_node.chip.pe.tcm import PeTcm
from sip_node.chip.records.op_log import OpLog
from sip_node.kernel import events
from sip_node.pdes.engine import Engine
from sip_node.programs.kept_slots import NOT_KEPT, KeptSlots, SlotTargets, cut_in_slots
from sip_node.programs.kernel_faults import KernelFaults


# Integers, since the hash of another Enum is a function in Python.
class ReceiveState(IntEnum):
    """The state of one receive; the table above describes the transitions."""

    POSTED = auto()
    READING = auto()
    ISSUING = auto()
    AWAITING_SLOT = auto()
    COMPLETE = auto()
    FAILED = auto()
    KEEPING = auto()


_FOLLOWING: dict[int, set[ReceiveState]] = {
    ReceiveState.POSTED: {ReceiveState.READING, ReceiveState.KEEPING, ReceiveState.FAILED},
    ReceiveState.KEEPING: {ReceiveState.COMPLETE, ReceiveState.FAILED},
    ReceiveState.READING: {ReceiveState.ISSUING, ReceiveState.COMPLETE},
    ReceiveState.ISSUING: {ReceiveState.READING, ReceiveState.AWAITING_SLOT, ReceiveState.FAILED},
    ReceiveState.AWAITING_SLOT: {ReceiveState.READING, ReceiveState.FAILED},
}


class Receive(Continuation):
    """A receive of elements of `dtype` into `targets`, physical blocks, from source line `line`.

    `direction` is None for any; once a message has matched, `source` is where it comes from,
    `queue` its queue, and `parts` are its slots that are still to come. `in_tcm` is true for
    targets in the PE's own TCM. With `in_place` the message may stay in its slots, from the
    physical address `kept` on; -1 if it was copied. `done` completes with the packed bytes. It is
    posted in `step`, whose operations its copies are.

    It continues at the end of each of its own copies and commands, by `steps`: the copy of `slot`,
    to several targets if it is `divided`.
    """

    def __init__(
        self,
        *,
        direction: str | None,
        dtype: DType,
        targets: Sequence[Operand],
        line: str,
        in_tcm: bool,
        in_place: bool = False,
    ) -> None:
        self.direction, self.dtype, self.targets = direction, dtype, targets
        self.line, self.in_tcm, self.in_place, self.kept = line, in_tcm, in_place, NOT_KEPT
        self.state, self.source, self.divided = ReceiveState.POSTED, "", False
        self.step = NONE
        self.parts: deque[SlotTargets] = deque()
        self.received: list[bytes] = []
        self.done: Completion[bytes] = Completion()
        self.queue: QueueState | None = None
        self.slot: Slot | None = None
        self.steps: Receives | None = None

    def enter(self, state: ReceiveState) -> None:
        """Change the state, to one that the table allows."""
        assert state in _FOLLOWING.get(self.state, ()), (
            f"a receive goes from {self.state!r} to {state!r}"
        )
        self.state = state

    def resume(self, done: Any) -> None:
        """The command for a slot is issued, or its copy has ended."""
        assert self.steps is not None
        if done is None:
            self.steps.command_issued(self)
        elif self.divided:
            self.steps.slot_copied(self, b"".join(done.value))
        else:
            self.steps.slot_copied(self, done.value)


class Receives:
    """All receives of one kernel. A command of the PE_CPU takes `issue_ps`.

    A kernel with a `transfer` receives one message of its own.
    """

    def __init__(  # noqa: PLR0913 - the parts of a PE and of its kernel that receives use
        self,
        engine: Engine,
        dma: PeDma,
        queues: QueueTable,
        issue_ps: int,
        faults: KernelFaults,
        trace: SlotTrace | None,
        *,
        tcm: PeTcm,
        log: OpLog,
        transfer: Transfer | None = None,
    ) -> None:
        self._engine, self._dma, self._queues, self._log = engine, dma, queues, log
        self._read_tcm = tcm.read
        self._transfer = transfer
        self._issue_ps, self._faults, self._trace = issue_ps, faults, trace
        self._call = faults.call
        self._posted: list[Receive] = []
        self._matched: dict[str, Receive] = {}
        self._kept = KeptSlots(queues, tcm)
        self._turn = 0

    @property
    def outstanding(self) -> int:
        """The number of receives that have not completed."""
        return len(self._posted) + len(self._matched)

    def post(self, receive: Receive) -> Completion[bytes]:
        """Queue a receive behind all earlier ones."""
        receive.step = self._log.step
        self._posted.append(receive)
        if self._transfer is not None:
            self._queues.post(self._call, self._slot_filled)
            self._queues.ready(self._call, self._transfer)
            return receive.done
        # Not in the constructor: a kernel that never receives must not take the slots of a
        # collective, which may run beside it on the same queues.
        self._queues.listener = self._slot_filled
        self._match()
        return receive.done

    def release(self, address: int) -> bool:
        """Return the credits of the message kept from `address` on; whether there is one."""
        return self._kept.release(address)

    def close(self) -> None:
        """The kernel has ended."""
        self._kept.release_all()
        if self._queues.listener == self._slot_filled:
            self._queues.listener = None

    def _slot_filled(self, direction: str) -> None:
        receive = self._matched.get(direction)
        if receive is None:
            self._match()
        elif receive.state is ReceiveState.AWAITING_SLOT:
            self._read_slot(receive)
        elif receive.state is ReceiveState.KEEPING:
            self._keep_slots(receive)

    def _match(self) -> None:
        """Give messages to receives, in the order of posting."""
        for receive in tuple(self._posted):
            # One that is complete at once has matched those behind it.
            if receive.state is not ReceiveState.POSTED:
                continue
            direction = self._full_direction(receive)
            # A receive without a message does not hold up receives of other directions.
            if direction is not None:
                self._posted.remove(receive)
                self._matched[direction] = receive
                receive.source, receive.steps = direction, self
                receive.queue = self._queues.queue(direction)
                self._begin(receive)

    def _full_direction(self, receive: Receive) -> str | None:
        if receive.direction is not None:
            return receive.direction if self._has_message(receive.direction) else None
        # Round robin over the directions, from behind the direction that was served last.
        known = self._queues.receiving
        for step in range(len(known)):
            turn = (self._turn + step) % len(known)
            if self._has_message(known[turn]):
                self._turn = turn + 1
                return known[turn]
        return None

    def _has_message(self, direction: str) -> bool:
        if self._transfer is not None:
            # The head slot selects the receive, and other kernels receive from there, too.
            return self._queues.begin_message(direction, self._call)
        return direction not in self._matched and self._queues.full_slots(direction) > 0

    def _begin(self, receive: Receive) -> None:
        queue = receive.queue
        assert queue is not None
        nbytes = sum(map(nbytes_of, receive.targets))
        # A block with gaps is one DMA descriptor, and a slot boundary would cut it inside a row.
        if nbytes > queue.slot_size and not all(map(is_packed, receive.targets)):
            self._refuse_gaps(receive, nbytes)
            return
        receive.parts = cut_in_slots(receive.targets, queue.slot_size)
        if receive.in_place:
            receive.kept = self._kept.keep(queue, nbytes)
            if receive.kept != NOT_KEPT:
                receive.enter(ReceiveState.KEEPING)
                self._keep_slots(receive)
                return
            self._kept.copied(queue, receive.targets[0].address)
        self._read_slot(receive)

    def _keep_slots(self, receive: Receive) -> None:
        """Take the slots of a message that have arrived, which stay where they are."""
        queue = receive.queue
        assert queue is not None
        while receive.parts:
            if not queue.arrived:
                return
            slot, targets = queue.arrived.popleft(), receive.parts.popleft()
            expected = targets.nbytes
            if not self._is_expected(receive, slot, expected):
                self._fail(receive, self._mismatch(receive, slot, expected))
                return
            if self._trace is not None:
                self._trace.received(queue.queue_pair, slot)
        (target,) = receive.targets
        self._complete(receive, self._read_tcm(Operand(receive.kept, target.shape, target.dtype)))

    def _read_slot(self, receive: Receive) -> None:
        """Copy the next slot of the message, which is full, to its targets."""
        assert receive.queue is not None
        slot, targets = receive.queue.arrived.popleft(), receive.parts.popleft()
        if not self._is_expected(receive, slot, targets.nbytes):
            self._fail(receive, self._mismatch(receive, slot, targets.nbytes))
            return
        receive.enter(ReceiveState.READING)
        # To memory the bytes go straight from the ring, past the TCM and its port.
        copy = self._dma.read if receive.in_tcm else self._dma.copy
        receive.slot, receive.divided = slot, len(targets.blocks) > 1
        self._log.step = receive.step
        reads: list[Completion[bytes]] = []
        address = slot.address
        for target in targets.blocks:
            reads.append(copy(Operand(address, target.shape, target.dtype), target, "ipcq_recv"))
            if receive.divided:
                address += nbytes_of(target)
        joint: AnyCompletion = all_of(reads) if receive.divided else reads[0]
        joint.then(receive)

    def slot_copied(self, receive: Receive, data: bytes) -> None:
        """The slot that was read is in its targets, which have these bytes."""
        queue = receive.queue
        assert queue is not None
        assert receive.slot is not None
        if self._trace is not None:
            self._trace.received(queue.queue_pair, receive.slot)
        receive.received.append(data)
        # It is empty: its credit returns now and not at the end of the message.
        self._kept.slot_copied(queue)
        if receive.parts:
            receive.enter(ReceiveState.ISSUING)
            events.resume_at(self._engine, self._engine.now_ps + self._issue_ps, receive)
        else:
            received = receive.received
            self._complete(receive, received[0] if len(received) == 1 else b"".join(received))

    def _complete(self, receive: Receive, data: bytes) -> None:
        """The last slot of a message is read, or kept."""
        receive.enter(ReceiveState.COMPLETE)
        del self._matched[receive.source]
        if self._transfer is not None:
            self._queues.end_message(receive.source, self._call)
        # Before the kernel goes on: what it does next must find the earlier receives matched.
        self._match()
        # The receives refer to the receive no more, and it not to them.
        receive.steps = None
        receive.done.complete(data)

    def command_issued(self, receive: Receive) -> None:
        """The command for the next slot is issued."""
        assert receive.queue is not None
        if receive.queue.arrived:
            self._read_slot(receive)
        else:
            receive.enter(ReceiveState.AWAITING_SLOT)

    def _refuse_gaps(self, receive: Receive, nbytes: int) -> None:
        problem = (
            f"recv from {receive.source} over a view with gaps, {nbytes:,} bytes: "
            f"it must fit a slot of {self._queues.pair(receive.source).slot_size:,} bytes"
        )
        self._fail(receive, self._faults.error(problem, receive.line))

    def _fail(self, receive: Receive, problem: KernbenchError) -> None:
        receive.enter(ReceiveState.FAILED)
        receive.done.fail(problem)

    def _is_expected(self, receive: Receive, slot: Slot, nbytes: int) -> bool:
        """Whether a slot has the next bytes of the message, by the metadata of its sender."""
        return (
            slot.call == self._call and slot.nbytes == nbytes and slot.dtype == receive.dtype.name
        )

    def _mismatch(self, receive: Receive, slot: Slot, expected: int) -> KernbenchError:
        """The fault of a slot that is not expected."""
        peer = self._queues.pair(receive.source).peer
        # The call first: ranks in different collectives differ in sizes, too, as a consequence.
        if slot.call != self._call:
            return self._faults.other_call(peer.sip, slot.call)
        problem = (
            f"recv from {receive.source} expects {expected} bytes of {receive.dtype.name} in this "
            f"slot, {slot.nbytes} bytes of {slot.dtype} came from {peer}"
        )
        return self._faults.error(problem, receive.line)
