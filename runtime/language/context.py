"""The interface between `tl` and the PE that runs a kernel. The chip model and the mock runtime
implement it.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NoReturn, Protocol, cast

from runtime.core.dtypes import DType
from runtime.language.atomics import AtomicCall
from runtime.language.chain import ChainCall, VectorRegisters
from runtime.language.gemm import Gemm
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.rows import RowGather
from runtime.language.running import NO_OPTIONS, MathOptions, running_engine
from runtime.language.value import Array, Pointer, Shape, Value
from runtime.model.tiles import TileSize

BarrierScope = Literal["launch", "cube"]
"""The PEs that wait for each other: those of the launch, or those of it in one cube."""


class PendingResult(Protocol):
    """The result of an operation that runs in the background."""

    def wait(self) -> Value | None:
        """Block until it is complete; the value in TCM, or None if the result is in memory."""
        ...


class PendingValue(PendingResult, Protocol):
    """The result of an operation in the background that leaves a value in TCM."""

    def wait(self) -> Value:
        """Block until it is complete; the value."""
        ...


class PendingValues(Protocol):
    """The result of an operation in the background that leaves several values in TCM."""

    def wait(self) -> tuple[Value, ...]:
        """Block until it is complete; the values."""
        ...


class KernelContext(Protocol):
    """The operations of a PE. A method blocks in simulated time until its effect is complete,
    unless its docstring excludes it.
    """

    @property
    def gemm_tile(self) -> TileSize:
        """The largest tile of the GEMM engine."""
        ...

    @property
    def vector_registers(self) -> VectorRegisters:
        """The registers of the vector engine."""
        ...

    @property
    def has_data(self) -> bool:
        """Whether values have elements."""
        ...

    @property
    def free_scratch_bytes(self) -> int:
        """Bytes of the scratch that are not in use."""
        ...

    def locate(self, line: str) -> None:
        """Take `line` as the source line of all commands from now on; with "", that of the code
        which calls.
        """
        ...

    def program_id(self, axis: int) -> int:
        """The number of the PE in its cube (axis 0) or of the cube in its SIP (axis 1)."""
        ...

    def num_programs(self, axis: int) -> int:
        """The number of PEs per cube (axis 0) or of cubes (axis 1) that run this launch."""
        ...

    def load(self, block: UsedBlock, out: Value | None = None) -> Value:
        """Copy a block from memory to scratch, or over the value `out`."""
        ...

    def load_async(self, block: UsedBlock, out: Value | None = None) -> PendingValue:
        """Start a load. Does not block."""
        ...

    def gather(self, rows: RowGather, out: Value | None = None) -> Value:
        """Copy rows from memory to TCM: a new value, or over `out`."""
        ...

    def gather_async(self, rows: RowGather, out: Value | None = None) -> PendingValue:
        """Start a gather. Does not block."""
        ...

    def store(self, block: UsedBlock, value: Value) -> None:
        """Copy a value from TCM to a block of memory; returns when the memory has acknowledged
        it.
        """
        ...

    def store_async(self, block: UsedBlock, value: Value) -> PendingResult:
        """Start a store. Does not block."""
        ...

    def atomic(self, call: AtomicCall) -> PendingResult:
        """Start a read-modify-write of memory. Does not block."""
        ...

    def math(
        self,
        name: str,
        operands: Sequence[Value | float],
        options: MathOptions = NO_OPTIONS,
        out: Value | None = None,
    ) -> Value:
        """Run one operation on the math engine: elementwise, a reduction, or a move of elements.

        The result is a new value, or `out`, which is written over: for an elementwise operation it
        may be an operand.
        """
        ...

    def settle(self, value: Value) -> None:
        """Block until no operation in flight writes over a value."""
        ...

    def elements_of(self, value: Value) -> Array | None:
        """The elements of a value, which the control flow of the kernel reads; None in a run
        without data.
        """
        ...

    def run_chain(self, call: ChainCall) -> Any:
        """Queue a chain at the math engine. Does not block; the result is pending."""
        ...

    def gemm(self, gemm: Gemm) -> PendingResult:
        """Queue a matrix product at the PE's scheduler. Returns at once; several may be in
        flight.
        """
        ...

    def send(self, direction: str, value: Value) -> None:
        """Write a value into the peer's receive ring; blocks while the ring is full."""
        ...

    def send_async(self, direction: str, value: Value) -> PendingResult:
        """Start a send, behind all earlier ones in its direction. Does not block."""
        ...

    def recv(
        self,
        direction: str | None,
        shape: Shape,
        dtype: DType,
        target: Value | Pointer | None = None,
        *,
        in_place: bool = False,
    ) -> PendingResult:
        """Post a receive of the next value from a direction, or from any direction in turn. Does
        not block.

        The value is copied to scratch, over a value in TCM (a `Value` as `target`), or to memory (a
        `Pointer`). With `in_place` it stays in the ring until its `release`, or is copied over the
        value `target` where the ring does not allow that.
        """
        ...

    def barrier(self, scope: BarrierScope) -> None:
        """Block until all PEs of the launch, or those in this cube, have called the barrier of this
        scope as often as this one.
        """
        ...

    def device_print(self, text: str) -> None:
        """Print a line from the PE, in no time."""
        ...

    def fail_assertion(self, problem: str) -> NoReturn:
        """Raise the `KernelError` of an assertion that does not hold."""
        ...

    def release(self, value: Value) -> None:
        """Return the slots of a value that was received in place."""
        ...

    def empty(self, shape: Shape, dtype: DType) -> Value:
        """Scratch for a value, whose elements are not defined. It takes no time."""
        ...

    def placed(self, shape: Shape, dtype: DType, address: int, *, is_zero: bool) -> Value:
        """A value at an address of scratch that `empty` has given. Its elements are not defined,
        or zero. It takes no time.
        """
        ...

    def ended(self, values: Sequence[Value]) -> None:
        """The kernel uses these placed values no more."""
        ...

    def address_of(self, pointer: Pointer) -> int:
        """The address of a pointer among the arguments, for a kernel that computes with it."""
        ...

    def run_again(self, effect: str) -> None:
        """The function of the kernel has an `effect` beside its commands, which needs it on each
        PE.
        """
        ...

    def scratch(self) -> AbstractContextManager[None]:
        """A scope that frees, at its end, the TCM of values made inside.

        The end waits for the operations in flight that use this memory.
        """
        ...


def running_kernel() -> KernelContext:
    """The context of the kernel that is running; errors are those of `running_engine`."""
    return cast("KernelContext", running_engine())
