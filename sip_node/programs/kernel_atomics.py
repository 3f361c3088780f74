"""The atomic operations of a kernel: requests of the DMA that its memories combine and answer.

A block is one request for each physical piece, as in a store. Each request is combined at one
instant of its memory, which decides the order of the operations of several kernels:

    PE 0     request ----> | memory: old 3, writes 3 + 1 | ----> old 3
    PE 1     request -------> | old 4, writes 4 + 1 | --------------> old 4
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from runtime.core.run_tables import NONE
from runtime.core.trace import Operand
from runtime.language.atomics import AtomicCall, combined
from runtime.language.value import Pointer, Strides, Value, row_major
from sip_node.chip.completion import Completion, all_of, completed
from sip_node.chip.fabric.packet import AtomicUpdate
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.mapping.stored_ranges import ReleasedRanges
from sip_node.chip.mapping.strided_block import (
    is_packed,
    item_bytes,
    nbytes_of,
    part_of,
)
from sip_node.chip.pe.pe import Pe
from sip_node.chip.store_order import KernelPoint
from sip_node.kernel import checksums, records
from sip_node.programs.kernel_calls import KernelCall
from sip_node.programs.kernel_memory import fill
from sip_node.programs.kernel_operation import Operation
from sip_node.programs.kernel_transfers import KernelTransfers
from sip_node.programs.program import Steps


class _AtomicRequest(NamedTuple):
    """One request: the block in memory, its operands in TCM, their elements, and the target of its
    old elements.
    """

    block: Operand
    operands: tuple[Operand, ...]
    data: bytes
    target: Operand | None


class KernelAtomics(KernelTransfers):
    """The atomic operations of one kernel."""

    def atomic(self, call: AtomicCall) -> Operation:
        """A read-modify-write at the memory, beside the kernel."""
        return self._issuer.block(self.beginning_atomic(call))

    def beginning_atomic(self, call: AtomicCall) -> Steps[Operation]:
        """The steps of `atomic`."""
        operands, dtype = call.operands, call.pointer.dtype
        yield from self._operations.awaiting_writers(operands)
        use = self._checked_use("tl.atomic", reads=(call.block,), writes=(call.block,))
        result = None
        if call.reads:
            result = yield from self._target(call.out, call.value.shape, dtype)
        over = () if call.out is None else (call.out,)
        if not call.value.nbytes:
            return Operation(self._operations, completed(None), result, over=over, memory=use)
        requests = self._atomic_requests(call, result)
        blocks = [each.block for each in requests]
        self._memory.check_store(call.pointer, blocks, is_atomic=True)
        # It is before the point itself: what acquires it is behind it.
        point = self._memory.point() if call.releases else None
        name = f"atomic {call.operation}"
        recorded = self._begun_call(f"{name} {call.sem}", blocks, operands)
        if recorded is not None:
            recorded.writes(blocks)
        served = _Served(self._pe, self._launch, call, point, recorded)
        done = yield from self._issuer.issuing_translated(
            "atomic", self._begun, served.started, requests
        )
        operation = Operation(
            self._operations,
            done,
            result,
            reads=operands,
            over=over,
            memory=use,
            call=recorded,
        )
        # With the last byte and not in `wait`: views of the result have the elements from then on.
        done.then(lambda old: served.end(operation, old.value))
        return operation

    def _atomic_requests(self, call: AtomicCall, result: Value | None) -> list[_AtomicRequest]:
        values = (*call.operands, *(() if result is None else (result,)))
        elements, count = [each.tobytes() for each in call.operands], len(call.operands)
        requests, start = list[_AtomicRequest](), 0
        near = tuple([each.operand for each in values])
        for parts, block in self._atomic_pieces(near, call.pointer, call.strides):
            end = start + nbytes_of(block)
            data = b"".join([each[start:end] for each in elements])
            target = None if result is None else parts[count]
            requests.append(_AtomicRequest(block, parts[:count], data, target))
            start = end
        return requests

    def _atomic_pieces(
        self, near: tuple[Operand, ...], pointer: Pointer, strides: Strides
    ) -> Iterator[tuple[tuple[Operand, ...], Operand]]:
        """Blocks in TCM of one shape, and the block of memory at `pointer`, by physical pieces."""
        pieces = self._memory.translate(pointer, near[0].shape, strides)
        if len(pieces) == 1:
            yield near, pieces[0]
        elif all(map(is_packed, near)):
            start = 0
            for piece in pieces:
                nbytes = nbytes_of(piece)
                yield tuple([part_of(each, start, nbytes) for each in near]), piece
                start += nbytes
        else:
            # Part of a block with gaps is no block.
            for index in range(near[0].shape[0]):
                rows = tuple([_row(each, index) for each in near])
                yield from self._atomic_pieces(rows, pointer + index * strides[0], strides[1:])


class _Served:
    """An atomic operation of a kernel, which its memories serve."""

    def __init__(
        self,
        pe: Pe,
        launch: PeLaunch,
        call: AtomicCall,
        point: KernelPoint | None,
        recorded: KernelCall | None,
    ) -> None:
        self._pe, self._is_alone = pe, launch.stored is None
        self._order = ReleasedRanges() if launch.barrier is None else launch.barrier.atomics
        self._call, self._point, self._recorded = call, point, recorded
        self._joins: tuple[KernelPoint, ...] = ()
        self._step = NONE

    def started(self, requests: list[_AtomicRequest]) -> Completion[list[bytes]]:
        """Start the requests."""
        self._step = self._pe.chip.log.step
        return all_of([self._start(each) for each in requests])

    def _start(self, request: _AtomicRequest) -> Completion[bytes]:
        target, call = request.target, self._call
        update = AtomicUpdate(
            len(request.operands), partial(self._serve, request), returns_old=target is not None
        )
        inputs = request.operands if target is None else (request.block, *request.operands)
        return self._pe.dma.update(
            f"atomic {call.operation}",
            inputs,
            request.block if target is None else target,
            request.block,
            request.data,
            update,
        )

    def _serve(self, request: _AtomicRequest, old: bytes, given: bytes | memoryview) -> bytes:
        """The memory combines a block now: its new elements."""
        call, order = self._call, self._order
        new = combined(call.operation, call.pointer.dtype, old, given) if old else b""
        # One PE alone is in no order with others.
        acquires = call.acquires and not self._is_alone
        orders = self._pe.chip.store_orders
        self._joins += order.serve(orders, request.block, self._point, acquires)
        if self._recorded is not None:
            self._recorded.served(order.served)
        block = request.block
        if request.target is not None:
            self._record("atomic old", (block,), request.target, old)
        self._record(f"atomic {call.operation}", (block, *request.operands), block, new)
        return new

    def _record(self, name: str, inputs: tuple[Operand, ...], target: Operand, data: bytes) -> None:
        """Enter what the memory does into the op log."""
        chip = self._pe.chip
        (_, node), now_ps = chip.memory_map.locate(inputs[0].address), chip.engine.now_ps
        location = chip.graph.nodes[node]
        records.enter(
            chip.log,
            location.kind,
            name,
            now_ps,
            now_ps,
            location.cube,
            location.pe,
            nbytes_of(target),
            checksums.checksum_of(data),
            now_ps,
            records.FOR_NOTHING,
            self._step,
            target,
            inputs,
            None,
            None,
        )

    def end(self, operation: Operation, old: list[bytes]) -> None:
        """All memories have answered, with the old elements if the kernel reads them."""
        operation.joins = self._joins
        result = operation.result
        if isinstance(result, Value):
            fill(result, b"".join(old))
        if self._recorded is not None:
            self._recorded.makes(operation.values)
            self._recorded.ended()


def _row(block: Operand, index: int) -> Operand:
    shape, strides = block.shape, block.strides or row_major(block.shape)
    address = block.address + index * strides[0] * item_bytes(block.dtype)
    return Operand(address, shape[1:], block.dtype, strides[1:])
