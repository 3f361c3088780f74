"""The messages of a running kernel: its sends and receives, as operations that may be in flight."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from runtime.core.dtypes import DType
from runtime.language.caller import kernel_line
from runtime.language.memory_in_flight import MemoryUse, UsedBlock
from runtime.language.value import Pointer, Shape, Value, row_major
from sip_node.chip.completion import Completion, completed
from sip_node.chip.kernel import PeLaunch
from sip_node.programs.kept_slots import NOT_KEPT
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_memory import KernelMemory
from sip_node.programs.kernel_operation import Operation, Operations
from sip_node.programs.kernel_queues import KernelQueues
from sip_node.programs.kernel_receive import Receives
from sip_node.programs.kernel_send import Sends
from sip_node.programs.kernel_transfers import Transfers, fill
from sip_node.programs.kernel_wait import KernelWait, PeerWait
from sip_node.programs.posted_receive import Receive


@dataclass(frozen=True)
class Messages:
    """The messages of one kernel."""

    launch: PeLaunch
    issuer: CommandIssuer
    memory: KernelMemory
    operations: Operations
    transfers: Transfers
    queues: KernelQueues
    sends: Sends
    receives: Receives
    wait: KernelWait
    faults: KernelFaults

    def send(self, direction: str, value: Value) -> None:
        """Write a value to the peer's ring, slot by slot; sleep while the ring is full."""
        self.operations.await_writers((value,))
        self.sends.send(direction, value)

    def send_async(self, direction: str, value: Value) -> Operation:
        """The same in the background, behind earlier messages in the direction."""
        self.operations.await_writers((value,))
        peer = self.wait.on_peer("send", direction, kernel_line())
        message = self.sends.start(direction, value, peer.line)
        sending = self.operations.started(message.paused, None, reads=(value,), peer=peer)
        sending.message = message
        return sending

    def recv(
        self,
        direction: str | None,
        dtype: DType,
        value: Value,
        over: Sequence[Value],
        *,
        in_place: bool,
    ) -> Operation:
        """Post a receive to `value`, which is in `over` if it existed before; in place: leave the
        message in its slots.
        """
        peer = self._peer(direction)
        receive = Receive(
            direction=direction,
            dtype=dtype,
            targets=[value.operand] if value.nbytes else [],
            line=peer.line,
            in_tcm=True,
            in_place=in_place,
        )
        operation = self.operations.started(receive.done, value, over=over, peer=peer)
        if in_place:
            receive.done.then(lambda received: _place(operation, value, receive, received))
        else:
            receive.done.then(
                lambda received: fill(value, received.value) if received.error is None else None
            )
        self._post(receive)
        return operation

    def recv_to_memory(
        self, direction: str | None, shape: Shape, dtype: DType, target: Pointer
    ) -> Operation:
        """Post a receive whose slots are copied straight to memory."""
        peer, use = self._peer(direction), self._written(shape, target)
        blocks = self.memory.translate(target, shape, row_major(shape)) if prod(shape) else []
        self.memory.check_store(target, blocks)
        receive = Receive(
            direction=direction, dtype=dtype, targets=blocks, line=peer.line, in_tcm=False
        )
        operation = self.operations.started(receive.done, None, memory=use, peer=peer)
        self._post(receive)
        return operation

    def release(self, value: Value) -> None:
        """Return the slots of a value that was received in place."""
        self.operations.await_users(value)
        if value.nbytes:
            self.issuer.issue("release", self._released, value)

    def _peer(self, direction: str | None) -> PeerWait:
        peer = self.wait.on_peer("recv", direction, kernel_line())
        self.queues.check_incoming(direction)
        return peer

    def _written(self, shape: Shape, target: Pointer) -> MemoryUse:
        block = UsedBlock(target, shape, row_major(shape))
        return self.transfers.checked_use("tl.recv", writes=(block,), line=kernel_line())

    def _post(self, receive: Receive) -> None:
        if receive.targets:
            self.issuer.issue("recv", self._posted, receive)
            return
        # No element, no message: the sender of an empty value sends no slot either.
        receive.done.complete(b"")
        launch, table = self.launch, self.queues.table
        transfer = launch.transfer
        if transfer is not None:
            # Of a transfer without elements, the send still waits for the receive.
            self.issuer.issue("recv", lambda: completed(table.ready(launch.call, transfer)))

    def _posted(self, receive: Receive) -> Completion[None]:
        self.receives.post(receive)
        return completed(None)

    def _released(self, value: Value) -> Completion[None]:
        if not self.receives.release(value.address):
            raise self.faults.error(f"release of {value!r}, which was not received in place")
        return completed(None)


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
