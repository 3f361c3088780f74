"""A PE of the mock runtime: it executes the operations of `tl` at once, on numpy arrays."""

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import NoReturn

import numpy as np

from runtime.core.coordinates import PeCoordinates
from runtime.core.dtypes import DType
from runtime.core.errors import PageFaultError
from runtime.core.program_grid import ALONE, DealtPrograms, GridPoint, program_text
from runtime.language.caller import kernel_line
from runtime.language.chain import ChainCall, VectorRegisters
from runtime.language.context import PendingResult, PendingValue
from runtime.language.gemm import Gemm, evaluate
from runtime.language.inference import check_over, infer
from runtime.language.memory_in_flight import BARRIER, MemoryInFlight, MemoryUse, UsedBlock
from runtime.language.mock.barrier import MockBarrier
from runtime.language.mock.matrices import pieces
from runtime.language.mock.memory import MockMemory, span_bytes
from runtime.language.mock.pending import (
    ChainResult,
    Complete,
    CompleteValue,
    ReceiveToMemory,
    SentInBackground,
)
from runtime.language.mock.queues import MockQueues
from runtime.language.operations import compute
from runtime.language.program_ids import ProgramIds
from runtime.language.rows import RowList, row_blocks
from runtime.language.shapes import checked_out
from runtime.language.value import Array, Pointer, Ref, Shape, Value, row_major
from runtime.model.topology import Topology, load_topology

_ORIGIN = PeCoordinates(0, 0, 0)


class MockPe:
    """A `KernelContext` without a chip. `kernel` is the name of the kernel in messages.

    `programs` are the PEs per cube and the cubes of the launch. PEs that share arrays get one
    `memory`. The GEMM tile and the size of the scratch are those of `topology`, by default of the
    file that ships with kernbench. With `dealt`, it runs these programs of a grid. `barrier` is
    that of a launch on several PEs.
    """

    def __init__(
        self,
        coordinates: PeCoordinates = _ORIGIN,
        programs: tuple[int, int] = (1, 1),
        *,
        kernel: str = "kernel",
        memory: MockMemory | None = None,
        topology: Topology | None = None,
        dealt: DealtPrograms | None = None,
        barrier: MockBarrier | None = None,
    ) -> None:
        topology = topology or _shipped_topology()
        self.kernel, self.coordinates = kernel, coordinates
        self.memory = memory or MockMemory()
        self.queues = MockQueues(coordinates, kernel)
        self.gemm_tile = topology.tile
        at, grid = coordinates, None if dealt is None else dealt.grid
        self._ids, self._dealt = ProgramIds((at.pe, at.cube), programs, grid), dealt
        math = topology.pe.math
        # Behind all addresses of the scratch.
        self._vector_registers = VectorRegisters(math.registers, math.lanes, 1 << 40)
        self._scratch_bytes = topology.kernel_scratch_bytes
        self._scratch_used = 0
        self._in_flight = MemoryInFlight()
        self._barrier = barrier or MockBarrier([coordinates])

    def programs(self) -> Iterator[GridPoint | None]:
        """Begin each program that the PE runs, one after the other; None without a grid."""
        for program in (None,) if self._dealt is None else self._dealt:
            self._ids.program = self.queues.program = program
            self._scratch_used, self._in_flight = 0, MemoryInFlight()
            yield program

    def program_id(self, axis: int) -> int:
        """The number of the PE in its cube (axis 0) or of the cube in its SIP (axis 1)."""
        return self._ids.program_id(axis)

    def num_programs(self, axis: int) -> int:
        """The number of PEs per cube (axis 0) or of cubes (axis 1) of the launch."""
        return self._ids.num_programs(axis)

    def load(
        self,
        pointer: Pointer,
        shape: Shape,
        strides: tuple[int, ...],
        out: Value | None = None,
    ) -> Value:
        """Copy a block out of an array."""
        self._use("tl.load", reads=(UsedBlock(pointer, shape, strides),))
        return self._loaded(pointer, shape, strides, out)

    def load_async(
        self,
        pointer: Pointer,
        shape: Shape,
        strides: tuple[int, ...],
        out: Value | None = None,
    ) -> PendingValue:
        """Copy at once."""
        use = self._use("tl.load_async", reads=(UsedBlock(pointer, shape, strides),))
        return CompleteValue(self._loaded(pointer, shape, strides, out), self._in_flight, use)

    def gather(
        self,
        pointer: Pointer,
        rows: RowList,
        shape: Shape,
        strides: tuple[int, ...],
        out: Value | None = None,
    ) -> Value:
        """Copy rows out of an array."""
        used = row_blocks(pointer, rows.numbers(), shape, strides)
        self._use(rows.operation, reads=used)
        return self._gathered(pointer, rows, used, shape, out)

    def gather_async(
        self,
        pointer: Pointer,
        rows: RowList,
        shape: Shape,
        strides: tuple[int, ...],
        out: Value | None = None,
    ) -> PendingValue:
        """Copy at once."""
        used = row_blocks(pointer, rows.numbers(), shape, strides)
        use = self._use(rows.operation, reads=used)
        return CompleteValue(self._gathered(pointer, rows, used, shape, out), self._in_flight, use)

    def store(self, pointer: Pointer, value: Value, strides: tuple[int, ...]) -> None:
        """Copy a value into an array."""
        self._use("tl.store", writes=(UsedBlock(pointer, value.shape, strides),))
        self._stored(pointer, value, strides)

    def store_async(
        self, pointer: Pointer, value: Value, strides: tuple[int, ...]
    ) -> PendingResult:
        """Copy at once."""
        use = self._use("tl.store_async", writes=(UsedBlock(pointer, value.shape, strides),))
        self._stored(pointer, value, strides)
        return Complete(None, self._in_flight, use)

    def math(
        self,
        name: str,
        operands: Sequence[Value | float],
        *,
        axis: int | None = None,
        keep_dims: bool = False,
        dtype: DType | None = None,
        shape: Shape | None = None,
        out: Value | None = None,
    ) -> Value:
        """Compute at once."""
        whole, result = infer(
            name, operands, axis=axis, keep_dims=keep_dims, dtype=dtype, shape=shape
        )
        if out is None:
            value = Value(whole, result, None, self._reserve(whole, result))
        else:
            value = checked_out(out, whole, result, name)
            check_over(name, operands, out)
        elements = [operand.data if isinstance(operand, Value) else operand for operand in operands]
        # An operand without data, as in a run without data, makes a result without data.
        known = [each for each in elements if each is not None]
        if len(known) == len(elements):
            value.fill(compute(name, known, result, axis=axis, keep_dims=keep_dims, shape=whole))
        return value

    @property
    def vector_registers(self) -> VectorRegisters:
        """The registers of the vector engine."""
        return self._vector_registers

    @property
    def has_data(self) -> bool:
        """Always."""
        return True

    def settle(self, value: Value) -> None:
        """Nothing is in flight."""

    def run_chain(self, call: ChainCall) -> ChainResult:
        """Store at once what the recorder has computed."""
        results: list[Value] = []
        for value, out in zip(call.values, call.outs, strict=True):
            result = out
            if result is None:
                address = self._reserve(value.shape, value.dtype)
                result = Value(value.shape, value.dtype, None, address)
            if value.data is not None:
                result.fill(np.array(value.data, order="C"))
            results.append(result)
        return ChainResult(call.returned(results))

    def gemm(self, gemm: Gemm) -> PendingResult:
        """Compute at once, tile by tile as the chip does."""
        use = self._use(
            "tl.composite",
            [UsedBlock.of(each) for each in (gemm.a, gemm.b) if isinstance(each, Ref)],
            [] if gemm.out is None else [UsedBlock.of(gemm.out)],
        )
        tile = self.gemm_tile
        a, b = self._matrix(gemm.a, (tile.m, tile.k)), self._matrix(gemm.b, (tile.k, tile.n))
        if gemm.out is not None:
            # Before the product is computed: a page fault of `out` must not depend on the operands'
            # data.
            targets = list(pieces(gemm.out, (tile.m, tile.n), self._block))
            if a is not None and b is not None:
                result = evaluate(gemm, a, b, tile)
                for rows, columns, block in targets:
                    block[...] = result[rows, columns]
            return Complete(None, self._in_flight, use)
        data = None if a is None or b is None else evaluate(gemm, a, b, tile)
        value = gemm.over
        if value is None:
            address = self._reserve(gemm.shape, gemm.dtype)
            value = Value(gemm.shape, gemm.dtype, data, address)
        elif value.data is not None and data is not None:
            value.data[...] = data
        return Complete(value, self._in_flight, use)

    def send(self, direction: str, value: Value) -> None:
        """Fill slots of the peer's ring, each as soon as it is free."""
        self.queues.check_alone(direction)
        self.queues.send(direction, value)

    def send_async(self, direction: str, value: Value) -> PendingResult:
        """The same in the background."""
        left = self.queues.send_async(direction, value)
        return SentInBackground(self.queues, left, self.queues.peer_text(direction))

    def recv(
        self,
        direction: str | None,
        shape: Shape,
        dtype: DType,
        target: Value | Pointer | None = None,
        *,
        in_place: bool = False,
    ) -> PendingResult:
        """Post a receive, which empties slots of a receive ring as they fill, or keeps them."""
        self.queues.check_alone(direction)
        value: Value | None = None
        use = None
        if isinstance(target, Pointer):
            block = UsedBlock(target, shape, row_major(shape))
            use = self._use("tl.recv", writes=(block,))
            elements = self._block(target, shape, row_major(shape))
        elif target is not None and target.data is not None:
            self.queues.check_gaps(f"recv from {direction or 'any'} over", target, "")
            value, elements = target, target.data
            if in_place:
                # A value of its own, as in the slots of a ring.
                elements = np.empty_like(elements)
                value = Value(shape, dtype, elements, target.address, scope=target.scope)
        else:
            elements = np.empty(shape, dtype.numpy)
            value = Value(shape, dtype, elements, self._reserve(shape, dtype))

        def deliver(data: bytearray) -> Value | None:
            # Into the existing array, so that views of the target change, too.
            elements[...] = np.frombuffer(data, dtype.numpy).reshape(shape)
            return value

        nbytes = prod(shape) * dtype.itemsize
        receive = self.queues.recv(direction, nbytes, dtype, deliver, in_place=in_place)
        return receive if use is None else ReceiveToMemory(receive, self._in_flight, use)

    def barrier(self) -> None:
        """Let other PEs run until all of the launch have called it."""
        if self._dealt is not None:
            raise self.queues.error(f"{BARRIER}: {ALONE}")
        problem = self._in_flight.unordered()
        if problem is not None:
            raise self.queues.error(problem)
        self._barrier.wait(self.queues)

    def release(self, value: Value) -> None:
        """Free the slots of a value that was received in place."""
        if value.nbytes:
            self.queues.release(value)

    def empty(self, shape: Shape, dtype: DType) -> Value:
        """Scratch for a value."""
        elements = np.zeros(shape, dtype.numpy)
        return Value(shape, dtype, elements, self._reserve(shape, dtype))

    def device_print(self, text: str) -> None:
        """Print at once."""
        of_grid = program_text(self._ids.program)
        sys.stdout.write(f"{self.coordinates}: kernel {self.kernel!r}{of_grid}: {text}\n")

    def fail_assertion(self, problem: str) -> NoReturn:
        """Raise the error."""
        raise self.queues.error(problem)

    @contextmanager
    def scratch(self) -> Generator[None]:
        """Free at the end what was allocated inside."""
        used = self._scratch_used
        yield
        self._scratch_used = used

    def _use(
        self,
        name: str,
        reads: Sequence[UsedBlock] = (),
        writes: Sequence[UsedBlock] = (),
    ) -> MemoryUse:
        """The memory that a command uses; `KernelError` if an operation in flight forbids it."""
        problem = self._in_flight.problem(name, reads, writes)
        if problem is not None:
            raise self.queues.error(problem)
        return MemoryUse(name, kernel_line(), reads, writes)

    def _loaded(
        self, pointer: Pointer, shape: Shape, strides: tuple[int, ...], out: Value | None
    ) -> Value:
        block = self._block(pointer, shape, strides)
        return self._value(pointer.dtype, block.copy() if out is None else block, out)

    def _gathered(
        self,
        pointer: Pointer,
        rows: RowList,
        used: Sequence[UsedBlock],
        shape: Shape,
        out: Value | None,
    ) -> Value:
        data = np.empty((len(rows), *shape), pointer.dtype.numpy)
        for entry, block in enumerate(used):
            try:
                data[entry] = self._block(*block)
            except PageFaultError as error:
                raise rows.fault(entry, error) from None
        return self._value(pointer.dtype, data, out)

    def _value(self, dtype: DType, data: Array, out: Value | None) -> Value:
        """A new value with the elements `data`, or `out` with them."""
        if out is None:
            return Value(data.shape, dtype, data, self._reserve(data.shape, dtype))
        if out.data is not None:
            out.data[...] = data
        return out

    def _stored(self, pointer: Pointer, value: Value, strides: tuple[int, ...]) -> None:
        block = self._block(pointer, value.shape, strides)
        if value.data is not None:
            block[...] = value.data

    def _matrix(self, operand: Value | Ref, tile: tuple[int, int]) -> Array | None:
        if isinstance(operand, Value):
            return operand.data
        elements = np.empty(operand.shape, operand.dtype.numpy)
        for rows, columns, block in pieces(operand, tile, self._block):
            elements[rows, columns] = block
        return elements

    def _block(self, pointer: Pointer, shape: Shape, strides: tuple[int, ...]) -> Array:
        block = self.memory.block(pointer, shape, strides)
        if block is None:
            raise PageFaultError(
                self.kernel,
                self.coordinates,
                kernel_line(),
                pointer.address,
                span_bytes(pointer, shape, strides),
                self.memory.nearest(pointer.address),
                self._ids.program,
            )
        return block

    def _reserve(self, shape: Shape, dtype: DType) -> int:
        nbytes, total = prod(shape) * dtype.itemsize, self._scratch_bytes
        # The chip aligns values to their element size, and its addresses are in the same order.
        start = -(-self._scratch_used // dtype.itemsize) * dtype.itemsize
        if start + nbytes > total:
            raise self.queues.error(
                f"kernel scratch is full: {self._scratch_used:,} of {total:,} bytes are in use and "
                f"{nbytes:,} more are needed; free values with `with tl.scratch():`"
            )
        self._scratch_used = start + nbytes
        return start


@cache
def _shipped_topology() -> Topology:
    return load_topology()
