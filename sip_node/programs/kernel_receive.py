"""The receives of a running kernel: each takes the slots of one message out of a ring and copies them to where it wants them.

A receive belongs to one direction or to any. Messages go to the receives that accept their direction in the order in which
these were posted; one that accepts several full directions takes them in turn. A message that has several slots keeps its
direction until the last one has been read.
"""

from collections.abc import Sequence

from runtime.core.dtypes import DType
from runtime.core.errors import KernbenchError
from runtime.core.trace import Operand
from sip_node.chip.completion import Completion, all_of
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.queue_table import QueueTable, Slot
from sip_node.chip.pe.slot_trace import SlotTrace
from sip_node.chip.strided_block import is_packed, nbytes_of, part_of
from sip_node.pdes.engine import Engine
from sip_node.programs.kernel_faults import KernelFaults


class Receive:
    """One receive of elements of `dtype` into `targets`, physical blocks, asked for at `line` of the kernel.

    `lands` says that the targets are in the PE's own TCM. `done` completes with the packed bytes.
    """

    def __init__(
        self,
        direction: str | None,
        dtype: DType,
        targets: Sequence[Operand],
        line: str,
        *,
        lands: bool,
    ) -> None:
        self.direction, self.dtype, self.targets, self.line, self.lands = (
            direction,
            dtype,
            targets,
            line,
            lands,
        )
        self.slots: list[list[Operand]] = []
        self.issued = True
        self.data = b""
        self.done = Completion[bytes]()


class Receives:
    """All receives of one kernel. Between two slots of a message the CPU issues a command, which takes `issue_ps`."""

    def __init__(
        self,
        engine: Engine,
        dma: PeDma,
        queues: QueueTable,
        issue_ps: int,
        faults: KernelFaults,
        trace: SlotTrace | None,
    ) -> None:
        self._engine, self._dma, self._queues = engine, dma, queues
        self._issue_ps, self._faults, self._trace = issue_ps, faults, trace
        self._posted: list[Receive] = []
        self._taking: dict[str, Receive] = {}
        self._turn = 0

    @property
    def outstanding(self) -> int:
        """Receives that have not completed."""
        return len(self._posted) + len(self._taking)

    def post(self, receive: Receive) -> Completion[bytes]:
        """Queue a receive behind all earlier ones."""
        # Not before: beside a kernel that never receives, a collective may listen to the same queues.
        self._queues.listener = self._arrived
        self._posted.append(receive)
        self._match()
        return receive.done

    def close(self) -> None:
        """The kernel has ended."""
        if self._queues.listener == self._arrived:
            self._queues.listener = None

    def _arrived(self, direction: str) -> None:
        if direction in self._taking:
            self._take(direction)
        else:
            self._match()

    def _match(self) -> None:
        for receive in tuple(self._posted):
            direction = self._full_direction(receive)
            if direction is not None:
                self._posted.remove(receive)
                self._taking[direction] = receive
                self._begin(direction, receive)

    def _begin(self, direction: str, receive: Receive) -> None:
        slot_size = self._queues.pair(direction).slot_size
        nbytes = sum(map(nbytes_of, receive.targets))
        if nbytes > slot_size and not all(map(is_packed, receive.targets)):
            problem = f"recv from {direction} over a view with gaps, {nbytes:,} bytes: it must fit a slot of {slot_size:,} bytes"
            receive.done.fail(self._faults.error(problem, receive.line))
            return
        receive.slots = _cut(receive.targets, slot_size)
        self._take(direction)

    def _full_direction(self, receive: Receive) -> str | None:
        if receive.direction is not None:
            return receive.direction if self._is_full(receive.direction) else None
        known = self._queues.receiving
        for step in range(len(known)):
            turn = (self._turn + step) % len(known)
            if self._is_full(known[turn]):
                self._turn = turn + 1
                return known[turn]
        return None

    def _is_full(self, direction: str) -> bool:
        return direction not in self._taking and self._queues.full_slots(direction) > 0

    def _take(self, direction: str) -> None:
        """Read the next slot of the message that a receive is taking, if it is there and the command has been issued."""
        receive = self._taking[direction]
        slot = self._queues.take(direction) if receive.issued else None
        if slot is None:
            return
        receive.issued = False
        targets = receive.slots.pop(0)
        problem = self._mismatch(direction, receive, slot, sum(map(nbytes_of, targets)))
        if problem is not None:
            receive.done.fail(problem)
            return
        copy = self._dma.read if receive.lands else self._dma.copy
        reads, address = list[Completion[bytes]](), slot.address
        for target in targets:
            reads.append(copy(Operand(address, target.shape, target.dtype), target, "ipcq_recv"))
            address += nbytes_of(target)
        all_of(reads).then(lambda read: self._read(direction, receive, slot, read.value))

    def _read(self, direction: str, receive: Receive, slot: Slot, pieces: list[bytes]) -> None:
        if self._trace is not None:
            self._trace.received(
                self._queues.pair(direction), slot.address, slot.nbytes, slot.dtype
            )
        receive.data += b"".join(pieces)
        self._queues.release(direction)
        if receive.slots:
            self._engine.at(self._engine.now_ps + self._issue_ps, self._issued, direction, receive)
            return
        del self._taking[direction]
        self._match()
        receive.done.complete(receive.data)

    def _issued(self, direction: str, receive: Receive) -> None:
        receive.issued = True
        self._take(direction)

    def _mismatch(
        self, direction: str, receive: Receive, slot: Slot, expected: int
    ) -> KernbenchError | None:
        peer = self._queues.pair(direction).peer
        if slot.call != self._faults.call:
            return self._faults.other_call(peer.sip, slot.call)
        if (slot.nbytes, slot.dtype) == (expected, receive.dtype.name):
            return None
        came = f"{slot.nbytes} bytes of {slot.dtype} came from {peer}"
        problem = f"recv from {direction} expects {expected} bytes of {receive.dtype.name} in this slot, {came}"
        return self._faults.error(problem, receive.line)


def _cut(targets: Sequence[Operand], slot_size: int) -> list[list[Operand]]:
    """For every slot of a message, the blocks that its bytes go to."""
    slots: list[list[Operand]] = []
    room = 0
    for target in targets:
        done, nbytes = 0, nbytes_of(target)
        while done < nbytes:
            if not room:
                slots.append([])
                room = slot_size
            count = min(room, nbytes - done)
            slots[-1].append(part_of(target, done, count))
            done, room = done + count, room - count
    return slots
