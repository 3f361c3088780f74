"""The memory accesses of a PE of the mock runtime: loads, gathers and stores.

All of them copy at once. What the chip would carry out beside the kernel is in flight here, too,
until the kernel waits for it: an access that conflicts with it is an error.
"""

from collections.abc import Callable, Sequence

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.errors import KernelError, PageFaultError
from runtime.language.atomics import AtomicCall, combined
from runtime.language.caller import kernel_line
from runtime.language.context import PendingResult, PendingValue
from runtime.language.memory_in_flight import MemoryInFlight, MemoryUse, UsedBlock
from runtime.language.mock.memory import MockMemory
from runtime.language.mock.pending import Complete, CompleteValue
from runtime.language.mock.scratch import MockScratch
from runtime.language.rows import RowGather
from runtime.language.value import Array, Pointer, Shape, Strides, Value

PageFault = Callable[[Pointer, Shape, Strides], PageFaultError]
"""The error of an access to a block that no array holds."""


class MockAccesses:
    """The accesses of one PE to `memory`, with values in `scratch`; `error` and `page_fault` make
    the errors of its kernel. `in_flight` are those for which the kernel has not waited.
    """

    def __init__(
        self,
        memory: MockMemory,
        scratch: MockScratch,
        error: Callable[[str], KernelError],
        page_fault: PageFault,
    ) -> None:
        self.memory, self._scratch = memory, scratch
        self._error, self._page_fault = error, page_fault
        self.in_flight = MemoryInFlight()

    def forget(self) -> None:
        """A program begins: nothing is in flight."""
        self.in_flight = MemoryInFlight()

    def use(
        self,
        name: str,
        reads: Sequence[UsedBlock] = (),
        writes: Sequence[UsedBlock] = (),
    ) -> MemoryUse:
        """The memory that a command uses; `KernelError` if an operation in flight forbids it."""
        problem = self.in_flight.problem(name, reads, writes)
        if problem is not None:
            raise self._error(problem)
        return MemoryUse(name, kernel_line(), reads, writes)

    def block(self, pointer: Pointer, shape: Shape, strides: Strides) -> Array:
        """The elements of a block; `PageFaultError` if no array holds it."""
        block = self.memory.block(pointer, shape, strides)
        if block is None:
            raise self._page_fault(pointer, shape, strides)
        return block

    def load(self, block: UsedBlock, out: Value | None = None) -> Value:
        """Copy a block out of an array."""
        self.use("tl.load", reads=(block,))
        return self._loaded(block, out)

    def load_async(self, block: UsedBlock, out: Value | None = None) -> PendingValue:
        """The same, in flight until the kernel waits."""
        use = self.use("tl.load_async", reads=(block,))
        return CompleteValue(self._loaded(block, out), self.in_flight, use)

    def gather(self, rows: RowGather, out: Value | None = None) -> Value:
        """Copy rows out of an array."""
        used = rows.blocks()
        self.use(rows.rows.operation, reads=used)
        return self._gathered(rows, used, out)

    def gather_async(self, rows: RowGather, out: Value | None = None) -> PendingValue:
        """The same, in flight until the kernel waits."""
        used = rows.blocks()
        use = self.use(rows.rows.operation, reads=used)
        return CompleteValue(self._gathered(rows, used, out), self.in_flight, use)

    def store(self, block: UsedBlock, value: Value) -> None:
        """Copy a value into an array."""
        self.use("tl.store", writes=(block,))
        self._stored(block, value)

    def store_async(self, block: UsedBlock, value: Value) -> PendingResult:
        """The same, in flight until the kernel waits."""
        use = self.use("tl.store_async", writes=(block,))
        self._stored(block, value)
        return Complete(None, self.in_flight, use)

    def atomic(self, call: AtomicCall) -> PendingResult:
        """Combine a value with a block of an array; in flight until the kernel waits."""
        use = self.use("tl.atomic", reads=(call.block,), writes=(call.block,))
        block = self.block(*call.block)
        old, dtype = block.copy(), call.pointer.dtype
        given = b"".join(each.tobytes() for each in call.operands)
        new = np.frombuffer(combined(call.operation, dtype, old.tobytes(), given), dtype.numpy)
        block[...] = new.reshape(old.shape)
        result = self._value(dtype, old, call.out) if call.reads else None
        return Complete(result, self.in_flight, use)

    def _loaded(self, used: UsedBlock, out: Value | None) -> Value:
        block = self.block(*used)
        return self._value(used.pointer.dtype, block.copy() if out is None else block, out)

    def _gathered(self, rows: RowGather, used: Sequence[UsedBlock], out: Value | None) -> Value:
        data = np.empty(rows.whole, rows.pointer.dtype.numpy)
        for entry, block in enumerate(used):
            try:
                data[entry] = self.block(*block)
            except PageFaultError as error:
                raise rows.rows.fault(entry, error) from None
        return self._value(rows.pointer.dtype, data, out)

    def _value(self, dtype: DType, data: Array, out: Value | None) -> Value:
        """A new value with the elements `data`, or `out` with them."""
        if out is None:
            return Value(data.shape, dtype, data, self._scratch.reserve(data.shape, dtype))
        if out.data is not None:
            out.data[...] = data
        return out

    def _stored(self, used: UsedBlock, value: Value) -> None:
        block = self.block(*used)
        if value.data is not None:
            block[...] = value.data
