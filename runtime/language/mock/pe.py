"""A PE of the mock runtime: it executes the operations of `tl` at once, on numpy arrays."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from math import prod
from typing import Any, NoReturn, TypedDict

import numpy as np

from runtime.core.coordinates import PeCoordinates
from runtime.core.dtypes import DType
from runtime.core.errors import PageFaultError
from runtime.core.program_grid import ALONE, DealtPrograms, GridPoint, program_text
from runtime.language.caller import kernel_line
from runtime.language.chain import ChainCall, VectorRegisters
from runtime.language.context import BarrierScope, PendingResult
from runtime.language.gemm import Gemm, evaluate
from runtime.language.inference import MathCall
from runtime.language.memory_in_flight import BARRIER, UsedBlock
from runtime.language.mock.accesses import MockAccesses
from runtime.language.mock.barrier import MockBarrier
from runtime.language.mock.matrices import pieces
from runtime.language.mock.memory import MockMemory, span_bytes
from runtime.language.mock.pending import (
    ChainResult,
    Complete,
    ReceiveToMemory,
    SentInBackground,
)
from runtime.language.mock.queues import MockQueues
from runtime.language.mock.scratch import MockScratch
from runtime.language.program_ids import ProgramIds
from runtime.language.running import NO_OPTIONS, MathOptions
from runtime.language.value import Array, Pointer, Ref, Shape, Strides, Value, row_major
from runtime.model.topology import Topology, load_topology

_ORIGIN = PeCoordinates(0, 0, 0)


class PeOptions(TypedDict, total=False):
    """The keywords of a `MockPe`."""

    kernel: str
    memory: MockMemory | None
    topology: Topology | None
    dealt: DealtPrograms | None
    barrier: MockBarrier | None


class MockPe(MockAccesses):
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
        self.queues = MockQueues(coordinates, kernel)
        error = self.queues.error
        scratch = MockScratch(topology.kernel_scratch_bytes, error)
        super().__init__(memory or MockMemory(), scratch, error, self._fault)
        self.gemm_tile = topology.tile
        own, grid = coordinates, None if dealt is None else dealt.grid
        self._ids, self._dealt = ProgramIds((own.pe, own.cube), programs, grid), dealt
        math = topology.pe.math
        # Behind all addresses of the scratch.
        self._vector_registers = VectorRegisters(math.registers, math.lanes, 1 << 40)
        self._barrier = barrier or MockBarrier([coordinates])
        self._kept_bytes = 0

    def programs(self) -> Iterator[GridPoint | None]:
        """Begin each program that the PE runs, one after the other; None without a grid."""
        for program in (None,) if self._dealt is None else self._dealt:
            self._ids.program = self.queues.program = program
            self._scratch.clear()
            self.forget()
            yield program

    @property
    def free_scratch_bytes(self) -> int:
        """Bytes of the scratch that are not in use."""
        return self._scratch.free_bytes

    def locate(self, line: str) -> None:
        """Take `line` as the source line of all commands from now on."""
        self.queues.line = line

    def program_id(self, axis: int) -> int:
        """The number of the PE in its cube (axis 0) or of the cube in its SIP (axis 1)."""
        return self._ids.program_id(axis)

    def num_programs(self, axis: int) -> int:
        """The number of PEs per cube (axis 0) or of cubes (axis 1) of the launch."""
        return self._ids.num_programs(axis)

    def math(
        self,
        name: str,
        operands: Sequence[Value | float],
        options: MathOptions = NO_OPTIONS,
        out: Value | None = None,
    ) -> Value:
        """Compute at once."""
        call = MathCall.checked(name, operands, options, out)
        value = out
        if value is None:
            address = self._scratch.reserve(call.whole, call.dtype)
            value = Value(call.whole, call.dtype, None, address)
        data = call.elements()
        if data is not None:
            value.fill(data)
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

    def elements_of(self, value: Value) -> Array | None:
        """The elements of a value."""
        return value.data

    def run_chain(self, call: ChainCall) -> Any:
        """Store at once what the recorder has computed."""
        results: list[Value] = []
        for value, out in zip(call.values, call.outs, strict=True):
            result = out
            if result is None:
                address = self._scratch.reserve(value.shape, value.dtype)
                result = Value(value.shape, value.dtype, None, address)
            if value.data is not None:
                result.fill(np.array(value.data, order="C"))
            results.append(result)
        return ChainResult(call.returned(results))

    def gemm(self, gemm: Gemm) -> PendingResult:
        """Compute at once, tile by tile as the chip does."""
        use = self.use(
            "tl.composite",
            [UsedBlock.of(each) for each in (gemm.a, gemm.b) if isinstance(each, Ref)],
            [] if gemm.out is None else [UsedBlock.of(gemm.out)],
        )
        tile = self.gemm_tile
        a, b = self._matrix(gemm.a, (tile.m, tile.k)), self._matrix(gemm.b, (tile.k, tile.n))
        if gemm.out is not None:
            # Before the product is computed: a page fault of `out` must not depend on the operands'
            # data.
            targets = list(pieces(gemm.out, (tile.m, tile.n), self.block))
            if a is not None and b is not None:
                result = evaluate(gemm, a, b, tile)
                for rows, columns, block in targets:
                    block[...] = result[rows, columns]
            return Complete(None, self.in_flight, use)
        data = None if a is None or b is None else evaluate(gemm, a, b, tile)
        value = gemm.over
        if value is None:
            address = self._scratch.reserve(gemm.shape, gemm.dtype)
            value = Value(gemm.shape, gemm.dtype, data, address)
        elif value.data is not None and data is not None:
            value.data[...] = data
        return Complete(value, self.in_flight, use)

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
            use = self.use("tl.recv", writes=(block,))
            elements = self.block(target, shape, row_major(shape))
        elif target is not None and target.data is not None:
            self.queues.check_gaps(f"recv from {direction or 'any'} over", target, "")
            value, elements = target, target.data
            if in_place:
                # A value of its own, as in the slots of a ring: before all addresses of the
                # scratch.
                elements = np.empty_like(elements)
                self._kept_bytes += value.nbytes
                value = Value(shape, dtype, elements, -self._kept_bytes, scope=target.scope)
        else:
            elements = np.empty(shape, dtype.numpy)
            value = Value(shape, dtype, elements, self._scratch.reserve(shape, dtype))

        def deliver(data: bytearray) -> Value | None:
            # Into the existing array, so that views of the target change, too.
            elements[...] = np.frombuffer(data, dtype.numpy).reshape(shape)
            return value

        nbytes = prod(shape) * dtype.itemsize
        receive = self.queues.recv(direction, nbytes, dtype, deliver, in_place=in_place)
        receive.target = value
        return receive if use is None else ReceiveToMemory(receive, self.in_flight, use)

    def barrier(self, scope: BarrierScope) -> None:
        """Let other PEs run until all of the launch, or of this cube, have called it."""
        if self._dealt is not None:
            raise self.queues.error(f"{BARRIER}: {ALONE}")
        problem = self.in_flight.unordered()
        if problem is not None:
            raise self.queues.error(problem)
        barrier = self._barrier
        if scope == "cube":
            barrier = barrier.of_cube(self.coordinates.cube)
        barrier.wait(self.queues)

    def release(self, value: Value) -> None:
        """Free the slots of a value that was received in place."""
        if value.nbytes:
            self.queues.release(value)

    def empty(self, shape: Shape, dtype: DType) -> Value:
        """Scratch for a value."""
        elements = np.zeros(shape, dtype.numpy)
        return Value(shape, dtype, elements, self._scratch.reserve(shape, dtype))

    def placed(self, shape: Shape, dtype: DType, address: int, *, is_zero: bool) -> Value:  # noqa: ARG002 - all elements are zero
        """A value at an address of the scratch."""
        return Value(shape, dtype, np.zeros(shape, dtype.numpy), address)

    def ended(self, values: Sequence[Value]) -> None:
        """Nothing to do: its owner leaves a value."""

    def address_of(self, pointer: Pointer) -> int:
        """The address of a pointer."""
        return pointer.address

    def run_again(self, effect: str) -> None:
        """Nothing to do: the function of the kernel runs."""

    def device_print(self, text: str) -> None:
        """Print at once."""
        of_grid = program_text(self._ids.program)
        sys.stdout.write(f"{self.coordinates}: kernel {self.kernel!r}{of_grid}: {text}\n")

    def fail_assertion(self, problem: str) -> NoReturn:
        """Raise the error."""
        raise self.queues.error(problem)

    def scratch(self) -> AbstractContextManager[None]:
        """Free at the end what was allocated inside."""
        return self._scratch.scope()

    def _matrix(self, operand: Value | Ref, tile: tuple[int, int]) -> Array | None:
        if isinstance(operand, Value):
            return operand.data
        elements = np.empty(operand.shape, operand.dtype.numpy)
        for rows, columns, block in pieces(operand, tile, self.block):
            elements[rows, columns] = block
        return elements

    def _fault(self, pointer: Pointer, shape: Shape, strides: Strides) -> PageFaultError:
        return PageFaultError(
            self.kernel,
            self.coordinates,
            kernel_line(),
            pointer.address,
            span_bytes(pointer, shape, strides),
            self.memory.nearest(pointer.address),
            self._ids.program,
        )


@cache
def _shipped_topology() -> Topology:
    return load_topology()
