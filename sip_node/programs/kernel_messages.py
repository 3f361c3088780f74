"""Communication of a running kernel with other PEs: messages, and the barrier of its launch.

Sends and receives are operations that may be in flight. The barrier is a command that ends when all
PEs of the launch call it.
"""

from math import prod
from typing import NamedTuple

from runtime.core.coordinates import PeCoordinates
from runtime.core.dtypes import DType
from runtime.core.program_grid import ALONE
from runtime.language.caller import kernel_line
from runtime.language.context import BarrierScope
from runtime.language.memory_in_flight import BARRIER, UsedBlock
from runtime.language.value import Pointer, Shape, Value, row_major
from sip_node.chip.completion import Completion, completed
from sip_node.chip.kernel import LaunchBarrier
from sip_node.chip.pe.pe import Pe
from sip_node.chip.pe.queue_table import QueueState
from sip_node.chip.store_order import KernelPoint, QueuePoints, StoreOrders
from sip_node.programs.kept_slots import NOT_KEPT
from sip_node.programs.kernel_atomics import KernelAtomics
from sip_node.programs.kernel_calls import KernelCall, end_call, end_call_with
from sip_node.programs.kernel_memory import fill
from sip_node.programs.kernel_operation import Operation
from sip_node.programs.kernel_receive import Receive
from sip_node.programs.kernel_wait import PeerWait
from sip_node.programs.program import Steps

_SHOWN = 4
"""PEs that a message names; it counts the others."""


class KernelMessages(KernelAtomics):
    """The messages of one kernel, and its waits in the barrier of the launch."""

    def send(self, direction: str, value: Value) -> None:
        """Write a value to the peer's ring, slot by slot; sleep while the ring is full."""
        self._issuer.block(self.sending(direction, value))

    def sending(self, direction: str, value: Value) -> Steps[None]:
        """The steps of `send`."""
        yield from self._operations.awaiting_writers((value,))
        call = self._begun_send("send", direction, value)
        leaving = self._leaving(direction, value)
        yield from self._sends.sending(direction, value)
        self._memory.join((leaving.credited(),))
        end_call(call)

    def send_async(self, direction: str, value: Value) -> Operation:
        """The same in the background, behind earlier messages in the direction."""
        return self._issuer.block(self.beginning_send(direction, value))

    def beginning_send(self, direction: str, value: Value) -> Steps[Operation]:
        """The steps of `send_async`."""
        yield from self._operations.awaiting_writers((value,))
        peer = self._queues.on_peer("send", direction, self._line)
        call = self._begun_send("send_async", direction, value, peer.line)
        leaving = self._leaving(direction, value)
        message = yield from self._sends.starting(direction, value, peer.line)
        end_call_with(call, message.paused)
        sending = Operation(
            self._operations, message.paused, None, reads=(value,), peer=peer, call=call
        )
        sending.message = message
        message.paused.then(lambda _: _join(sending, leaving.credited()))
        return sending

    def _leaving(self, direction: str, value: Value) -> "_Leaving":
        """A message begins to leave, behind all that the kernel has stored."""
        queue, point = self._queues.outgoing(direction), self._memory.point()
        orders, pair = self._pe.chip.store_orders, queue.pair
        if pair.peer.sip != self._pe.coordinates.sip or self._launch.transfer is not None:
            orders.leave(point)
            return _Leaving(queue, orders)
        points = orders.queue(self._table.name, pair.peer, pair.peer_direction)
        slots = -(-value.nbytes // pair.slot_size)
        return _Leaving(queue, orders, points, points.send(point, slots) if slots else 0)

    def _begun_send(
        self, operation: str, direction: str, value: Value, line: str = ""
    ) -> KernelCall | None:
        """A call that sends a value, in a run with records; an empty value has no message."""
        calls = self._calls
        if calls is None or not value.nbytes:
            return None
        pair = self._queues.outgoing(direction).pair
        call = calls.begin(operation, (), (value,), line)
        call.sends(self._table.name, pair, value.nbytes, self._message_id)
        return call

    @property
    def _message_id(self) -> str:
        """The id of the message that the kernel sends or receives, if it is a transfer."""
        return self._launch.call if self._launch.transfer is not None else ""

    def _begun_receive(self, line: str) -> KernelCall | None:
        calls = self._calls
        return None if calls is None else calls.begin("recv", (), (), line)

    def _arrives(
        self, operation: Operation, receive: Receive, nbytes: int, posted: KernelPoint | None
    ) -> None:
        """A message has arrived; the receive was posted at a point of the kernel."""
        if receive.done.error is not None or not nbytes:
            return
        orders, pair = self._pe.chip.store_orders, self._table.pair(receive.source)
        if pair.peer.sip != self._pe.coordinates.sip or self._launch.transfer is not None:
            orders.leave(posted)
            operation.joins = (orders.entered(),)
            return
        points = orders.queue(self._table.name, self._pe.coordinates, pair.direction)
        sent, credit = points.receive(-(-nbytes // pair.slot_size), posted)
        operation.joins = (sent,)
        if receive.kept != NOT_KEPT:
            # The slots are free when the kernel releases them.
            credit.point, self._kept_credits[receive.kept] = None, credit

    def _record_end(self, call: KernelCall, receive: Receive, nbytes: int) -> None:
        """A receive has ended: record its message."""
        if receive.done.error is None and nbytes:
            pair = self._table.pair(receive.source)
            pe = self._pe.coordinates
            call.receives(self._table.name, pair, pe, nbytes, self._message_id)
            call.ended()

    def recv(
        self,
        direction: str | None,
        shape: Shape,
        dtype: DType,
        target: Value | Pointer | None = None,
        *,
        in_place: bool = False,
    ) -> Operation:
        """Post a receive to scratch, over a value in TCM, or from the slots straight to memory; in
        place: leave the message in its slots.
        """
        return self._issuer.block(self.receiving(direction, shape, dtype, target, in_place))

    def receiving(
        self,
        direction: str | None,
        shape: Shape,
        dtype: DType,
        target: Value | Pointer | None,
        in_place: bool,  # noqa: FBT001 - of the generator behind `recv`
    ) -> Steps[Operation]:
        """The steps of `recv`."""
        if isinstance(target, Pointer):
            return (yield from self._receiving_to_memory(direction, shape, dtype, target))
        value = yield from self._target(target, shape, dtype)
        peer = self._peer(direction)
        receive = Receive(
            direction=direction,
            dtype=dtype,
            targets=[value.operand] if value.nbytes else [],
            line=peer.line,
            in_tcm=True,
            in_place=in_place,
        )
        over = () if target is None else (target,)
        call, posted = self._begun_receive(peer.line), self._memory.point()
        operation = Operation(
            self._operations, receive.done, value, over=over, peer=peer, call=call
        )
        receive.done.then(lambda _: self._arrives(operation, receive, value.nbytes, posted))
        if call is not None:
            recorded = call
            receive.done.then(lambda _: self._record_value(recorded, receive, value))
        if in_place:
            receive.done.then(lambda received: _place(operation, value, receive, received))
        else:
            receive.done.then(
                lambda received: fill(value, received.value) if received.error is None else None
            )
        yield from self._posting(receive)
        return operation

    def _record_value(self, call: KernelCall, receive: Receive, value: Value) -> None:
        """A receive to TCM has ended: record its value, which may be in its slots."""
        if receive.kept != NOT_KEPT:
            call.operation = "recv in place"
            value = Value(value.shape, value.dtype, None, receive.kept, scope=value.scope)
        if receive.done.error is None:
            call.makes((value,))
        self._record_end(call, receive, value.nbytes)

    def release(self, value: Value) -> None:
        """Return the slots of a value that was received in place."""
        self._issuer.block(self.releasing(value))

    def releasing(self, value: Value) -> Steps[None]:
        """The steps of `release`."""
        yield from self._operations.awaiting_users(value)
        if value.nbytes:
            call = self._begun_call("release", (), (value,))
            if value.address in self._kept_credits:
                self._kept_credits.pop(value.address).point = self._memory.point()
            yield from self._issuer.issuing("release", self._released, value)
            end_call(call)

    def barrier(self, scope: BarrierScope) -> None:
        """Block until all PEs of the launch, or those in this cube, have called the barrier."""
        self._issuer.block(self.entering_barrier(scope))

    def entering_barrier(self, scope: BarrierScope) -> Steps[None]:
        """The steps of `barrier`."""
        if self._launch.programs is not None:
            raise self._faults.error(f"{BARRIER}: {ALONE}")
        problem = self._operations.memory.unordered()
        if problem is not None:
            raise self._faults.error(problem)
        pe, barrier = self._pe, self._launch.barrier
        assert barrier is not None, "a launch of the IO_CPU has a barrier"
        if scope == "cube":
            barrier = barrier.of_cube(pe.coordinates.cube)
        self._wait.begin_barrier(lambda: _missing(pe, barrier), self._faults.line)
        call = self._begun_call("barrier of a cube" if scope == "cube" else "barrier", ())
        if scope == "cube":
            barrier.enter(self._memory.point())
        yield from self._issuer.issuing("barrier", pe.cpu.enter_barrier, barrier)
        if scope == "cube":
            self._memory.join(barrier.points)
        else:
            self._memory.forget()
        end_call(call)
        self._wait.end()

    def _receiving_to_memory(
        self, direction: str | None, shape: Shape, dtype: DType, target: Pointer
    ) -> Steps[Operation]:
        """Post a receive whose slots are copied straight to memory."""
        peer, block = self._peer(direction), UsedBlock(target, shape, row_major(shape))
        use = self._checked_use("tl.recv", writes=(block,), line=self._line)
        blocks = self._memory.translate(target, shape, row_major(shape)) if prod(shape) else []
        store = self._memory.check_store(target, blocks, in_flight=True)
        receive = Receive(
            direction=direction, dtype=dtype, targets=blocks, line=peer.line, in_tcm=False
        )
        call, posted = self._begun_receive(peer.line), self._memory.point()
        operation = Operation(
            self._operations, receive.done, None, memory=use, peer=peer, call=call, store=store
        )
        nbytes = prod(shape) * dtype.itemsize
        receive.done.then(lambda _: self._arrives(operation, receive, nbytes, posted))
        if call is not None:
            recorded = call
            recorded.writes(blocks)
            receive.done.then(lambda _: self._record_end(recorded, receive, nbytes))
        yield from self._posting(receive)
        return operation

    @property
    def _line(self) -> str:
        """The line of the kernel that runs."""
        return self._faults.line or kernel_line()

    def _peer(self, direction: str | None) -> PeerWait:
        peer = self._queues.on_peer("recv", direction, self._line)
        self._queues.check_incoming(direction)
        return peer

    def _posting(self, receive: Receive) -> Steps[None]:
        if receive.targets:
            yield from self._issuer.issuing("recv", self._posted, receive)
            return
        # No element, no message: the sender of an empty value sends no slot either.
        receive.done.complete(b"")
        launch, table = self._launch, self._queues.table
        transfer = launch.transfer
        if transfer is not None:
            # Of a transfer without elements, the send still waits for the receive.
            yield from self._issuer.issuing(
                "recv", lambda: completed(table.ready(launch.call, transfer))
            )

    def _posted(self, receive: Receive) -> Completion[None]:
        self._receives.post(receive)
        return completed(None)

    def _released(self, value: Value) -> Completion[None]:
        if not self._receives.release(value.address):
            raise self._faults.error(f"release of {value!r}, which was not received in place")
        return completed(None)


class _Leaving(NamedTuple):
    """A message that leaves through a queue, up to slot `end` of those between PEs of a SIP."""

    queue: QueueState
    orders: StoreOrders
    points: QueuePoints | None = None
    end: int = 0

    def credited(self) -> KernelPoint | None:
        """The point that the end of the message is behind, by the credit of its last slot."""
        depth = self.queue.pair.n_slots
        if self.points is not None:
            return self.points.credited(self.end, depth)
        return self.orders.entered() if self.queue.sent > depth else None


def _join(operation: Operation, point: KernelPoint | None) -> None:
    operation.joins = (point,)


def _place(
    operation: Operation, target: Value, receive: Receive, received: Completion[bytes]
) -> None:
    """The value of a receive in place: in its slots, or copied over its target."""
    if received.error is not None:
        return
    if receive.kept != NOT_KEPT:
        kept = Value(target.shape, target.dtype, None, receive.kept, scope=target.scope)
        operation.result = target = kept
    fill(target, received.value)


def _missing(pe: Pe, barrier: LaunchBarrier) -> tuple[str, PeCoordinates | None]:
    """The PEs that a barrier waits for, as text, and the first of them whose kernel runs."""
    missing, running = barrier.missing, list[tuple[int, int]]()
    named: list[str] = []
    for cube, number in missing:
        if _runs(pe, cube, number):
            running.append((cube, number))
            named.append(f"cube {cube} pe {number}")
        else:
            named.append(f"cube {cube} pe {number} (ended without it)")
    if len(named) > _SHOWN:
        named[_SHOWN:] = [f"{len(named) - _SHOWN} more"]
    first = PeCoordinates(pe.coordinates.sip, *running[0]) if running else None
    return f"without {', '.join(named)}", first


def _runs(pe: Pe, cube: int, number: int) -> bool:
    """Whether another PE of the launch still runs its kernel."""
    other = pe.chip.reach(pe.chip.graph.pe(cube, number))
    return isinstance(other, Pe) and other.cpu.running > 0
