"""The receives of a running kernel: each copies the slots of one message out of a ring.

`posted_receive.py` has the states of a receive. Every slot that is copied returns its credit to the
sender at once, so a message may be longer than the ring.

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
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.errors import KernbenchError
from runtime.core.requests import Transfer
from runtime.core.trace import Operand
from sip_node.chip.completion import Completion, all_of, completed
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.queue_table import QueueTable, Slot
from sip_node.chip.pe.slot_trace import SlotTrace
from sip_node.chip.pe.tcm import PeTcm
from sip_node.chip.strided_block import is_packed, item_bytes, nbytes_of, part_of
from sip_node.pdes.engine import Engine
from sip_node.programs.kept_slots import NOT_KEPT, KeptSlots
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.posted_receive import Receive, ReceiveState
from sip_node.programs.slot_targets import SlotTargets, cut_in_slots


class ReferenceReceives:
    """All receives of one kernel. A command of the PE_CPU takes `issue_ps`.

    A kernel with a `transfer` receives one message of its own.
    """

    def __init__(
        self,
        engine: Engine,
        dma: PeDma,
        queues: QueueTable,
        issue_ps: int,
        faults: KernelFaults,
        trace: SlotTrace | None,
        *,
        tcm: PeTcm,
        transfer: Transfer | None = None,
    ) -> None:
        self._engine, self._dma, self._queues = engine, dma, queues
        self._read_tcm = tcm.read
        self._transfer = transfer
        self._issue_ps, self._faults, self._trace = issue_ps, faults, trace
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
        self._posted.append(receive)
        if self._transfer is not None:
            self._queues.post(self._faults.call, self._slot_filled)
            self._queues.ready(self._faults.call, self._transfer)
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
            direction = self._full_direction(receive)
            # A receive without a message does not hold up receives of other directions.
            if direction is not None:
                self._posted.remove(receive)
                self._matched[direction] = receive
                receive.source = direction
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
            return self._queues.begin_message(direction, self._faults.call)
        return direction not in self._matched and self._queues.full_slots(direction) > 0

    def _begin(self, receive: Receive) -> None:
        slot_size = self._queues.pair(receive.source).slot_size
        nbytes = sum(map(nbytes_of, receive.targets))
        # A block with gaps is one DMA descriptor, and a slot boundary would cut it inside a row.
        if nbytes > slot_size and not all(map(is_packed, receive.targets)):
            self._refuse_gaps(receive, nbytes)
            return
        receive.parts = cut_in_slots(receive.targets, slot_size)
        if receive.in_place and self._keep(receive, nbytes):
            receive.enter(ReceiveState.KEEPING)
            self._keep_slots(receive)
        else:
            self._read_slot(receive)

    def _keep(self, receive: Receive, nbytes: int) -> bool:
        """Whether a message stays in its slots, which are then noted as kept."""
        receive.kept = self._kept.keep(receive.source, nbytes)
        if receive.kept == NOT_KEPT:
            self._kept.copied(receive.source, receive.targets[0].address)
        return receive.kept != NOT_KEPT

    def _keep_slots(self, receive: Receive) -> None:
        """Take the slots of a message that have arrived, which stay where they are."""
        while receive.parts:
            slot = self._queues.take(receive.source)
            if slot is None:
                return
            problem = self._mismatch(receive, slot, receive.parts.popleft().nbytes)
            if problem is not None:
                self._fail(receive, problem)
                return
            if self._trace is not None:
                self._trace.received(self._queues.pair(receive.source), slot)
        (target,) = receive.targets
        self._complete(receive, self._read_tcm(Operand(receive.kept, target.shape, target.dtype)))

    def _read_slot(self, receive: Receive) -> None:
        """Copy the next slot of the message, which is full, to its targets."""
        slot = self._queues.take(receive.source)
        assert slot is not None
        targets = receive.parts.popleft()
        problem = self._mismatch(receive, slot, targets.nbytes)
        if problem is not None:
            self._fail(receive, problem)
            return
        receive.enter(ReceiveState.READING)
        # To memory the bytes go straight from the ring, past the TCM and its port.
        copy = self._dma.read if receive.in_tcm else self._dma.copy
        if len(targets.blocks) == 1:
            (target,) = targets.blocks
            source = Operand(slot.address, target.shape, target.dtype)
            copied = copy(source, target, "ipcq_recv")
            copied.then(partial(self._slot_copied, receive, slot))
            return
        reads, address = list[Completion[bytes]](), slot.address
        for target in targets.blocks:
            reads.append(copy(Operand(address, target.shape, target.dtype), target, "ipcq_recv"))
            address += nbytes_of(target)
        all_of(reads).then(partial(self._slot_copied_in_parts, receive, slot))

    def _slot_copied_in_parts(
        self, receive: Receive, slot: Slot, read: Completion[list[bytes]]
    ) -> None:
        self._slot_copied(receive, slot, completed(b"".join(read.value)))

    def _slot_copied(self, receive: Receive, slot: Slot, read: Completion[bytes]) -> None:
        if self._trace is not None:
            self._trace.received(self._queues.pair(receive.source), slot)
        receive.received.append(read.value)
        # The slot is empty, so its credit returns now and not at the end of the message.
        self._kept.slot_copied(receive.source)
        if receive.parts:
            receive.enter(ReceiveState.ISSUING)
            issued_ps = self._engine.now_ps + self._issue_ps
            self._engine.at(issued_ps, self._command_issued, receive)
            return
        received = receive.received
        self._complete(receive, received[0] if len(received) == 1 else b"".join(received))

    def _complete(self, receive: Receive, data: bytes) -> None:
        """The last slot of a message is read, or kept."""
        receive.enter(ReceiveState.COMPLETE)
        del self._matched[receive.source]
        if self._transfer is not None:
            self._queues.end_message(receive.source, self._faults.call)
        # Before the kernel goes on: what it does next must find the earlier receives matched.
        self._match()
        receive.done.complete(data)

    def _command_issued(self, receive: Receive) -> None:
        if self._queues.full_slots(receive.source):
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

    def _mismatch(self, receive: Receive, slot: Slot, expected: int) -> KernbenchError | None:
        """What is wrong with the slot, by the metadata that its sender wrote."""
        peer = self._queues.pair(receive.source).peer
        # The call first: ranks in different collectives differ in sizes, too, as a consequence.
        if slot.call != self._faults.call:
            return self._faults.other_call(peer.sip, slot.call)
        dtype = receive.dtype.name
        if (slot.nbytes, slot.dtype) == (expected, dtype):
            return None
        problem = (
            f"recv from {receive.source} expects {expected} bytes of {dtype} in this slot, "
            f"{slot.nbytes} bytes of {slot.dtype} came from {peer}"
        )
        return self._faults.error(problem, receive.line)


class _SlotFunctions(NamedTuple):
    """What the twin calls of this room and of the rooms between."""

    nbytes_of: Callable[[Operand], int] = nbytes_of
    item_bytes: Callable[[str], int] = item_bytes
    is_packed: Callable[[Operand], bool] = is_packed
    part_of: Callable[[Operand, int, int], Operand] = part_of
    cut: Callable[[Sequence[Operand], int], deque[SlotTargets]] = cut_in_slots
    all_of: Callable[[Sequence[Completion[bytes]]], Completion[list[bytes]]] = all_of


_FUNCTIONS = _SlotFunctions()


if TYPE_CHECKING or not IS_COMPILED:
    Receives = ReferenceReceives
else:
    from sip_node.compiled.slot_receives import SlotReceives

    class Receives(SlotReceives, ReferenceReceives):
        """The reference, whose slots are in C."""

        def __init__(
            self,
            engine: Engine,
            dma: PeDma,
            queues: QueueTable,
            issue_ps: int,
            faults: KernelFaults,
            trace: SlotTrace | None,
            *,
            tcm: PeTcm,
            transfer: Transfer | None = None,
        ) -> None:
            super().__init__(
                engine, dma, queues, issue_ps, faults, trace, tcm=tcm, transfer=transfer
            )
            self.bind(
                engine=engine,
                dma=dma,
                queues=queues,
                issue_ps=issue_ps,
                call=faults.call,
                trace=trace,
                by_call=transfer is not None,
                functions=_FUNCTIONS,
            )
