"""The commands of a list: those of one kernel, with open places for what differs between PEs.

A list is made once for all PEs and launches whose commands are equal but for the addresses of their
tensors, of the scratch and of the registers. What a command needs is named: a pointer by the
argument that it is based on, a value by the number of the command's result, an operation by the
number of its start. `ListRun` has what these names stand for on one PE.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from runtime.core.dtypes import DType
from runtime.language.chain import Chain, ChainCall, ChainPlan, ChainStep
from runtime.language.chains.chain_recorder import step_elements
from runtime.language.gemm import Gemm
from runtime.language.inference import MathCall
from runtime.language.rows import RowList
from runtime.language.value import Pointer, Ref, Shape, Strides, Value, part_of
from runtime.language.views import View
from sip_node.programs.kernel_operation import Operation
from sip_node.programs.program import Steps


class PointerPlace(NamedTuple):
    """A pointer `nbytes` behind that with the number `base` among those of the arguments."""

    base: int
    nbytes: int
    dtype: DType


class ValuePlace(NamedTuple):
    """The value that the list has made as number `number`, or a view of it."""

    number: int
    view: View | None = None


class StepPlace(NamedTuple):
    """The result of a step of a chain, or a view of it."""

    number: int
    view: View | None = None


class RefPlace(NamedTuple):
    """A matrix in memory, whose pointer is based on an argument."""

    pointer: PointerPlace
    ref: Ref


class ListedKernelCalls(Protocol):
    """The commands of a kernel on a PE, which `PeKernelContext` has."""

    def loading(
        self, pointer: Pointer, shape: Shape, strides: Strides, out: Value | None = None
    ) -> Steps[Value]:
        """Load a block."""
        ...

    def beginning_load(
        self, pointer: Pointer, shape: Shape, strides: Strides, out: Value | None = None
    ) -> Steps[Operation]:
        """Begin to load a block."""
        ...

    def gathering(
        self,
        pointer: Pointer,
        rows: RowList,
        shape: Shape,
        strides: Strides,
        out: Value | None = None,
    ) -> Steps[Value]:
        """Gather rows."""
        ...

    def storing(self, pointer: Pointer, value: Value, strides: Strides) -> Steps[None]:
        """Store a block."""
        ...

    def beginning_store(self, pointer: Pointer, value: Value, strides: Strides) -> Steps[Operation]:
        """Begin to store a block."""
        ...

    def computing(self, call: MathCall) -> Steps[Value]:
        """Carry out an operation of the vector engine."""
        ...

    def queueing(self, call: ChainCall) -> Steps[Operation]:
        """Queue a chain at the vector engine."""
        ...

    def submitting(self, gemm: Gemm) -> Steps[Operation]:
        """Queue a matrix product at the scheduler."""
        ...

    def settling(self, value: Value) -> Steps[None]:
        """Wait for the operations that write over a value."""
        ...

    def ending(self, operation: Operation) -> Steps[None]:
        """Wait for the end of an operation."""
        ...

    def entering_barrier(self) -> Steps[None]:
        """Wait for all PEs of the launch."""
        ...

    def ending_scratch(self, begin: int) -> Steps[None]:
        """Release the scratch from an address on."""
        ...

    def empty(self, shape: Shape, dtype: DType) -> Value:
        """Make a value without defined elements."""
        ...

    @property
    def scratch_end(self) -> int:
        """The address behind the scratch in use."""
        ...


class ListRun:
    """A list on one PE: the `addresses` of its pointers, and what its commands have made so far.

    The results of chains have addresses from `registers` on.
    """

    def __init__(
        self, kernel: ListedKernelCalls, addresses: Sequence[int], registers: int, *, has_data: bool
    ) -> None:
        self.kernel, self.addresses, self.registers = kernel, addresses, registers
        self.has_data = has_data
        self.values: list[Value] = []
        self.operations: dict[int, Operation] = {}
        # The address at which each scope of scratch begins, and the number of values before it.
        self.scopes: list[tuple[int, int]] = []

    def pointer(self, place: PointerPlace) -> Pointer:
        """A pointer to memory."""
        return Pointer(self.addresses[place.base] + place.nbytes, place.dtype)

    def value(self, place: ValuePlace) -> Value:
        """A value in TCM."""
        value = self.values[place.number]
        return value if place.view is None else part_of(value, place.view)

    def out(self, place: ValuePlace | None) -> Value | None:
        """The value that a result is written over, if any."""
        return None if place is None else self.value(place)

    def operand(self, place: ValuePlace | RefPlace) -> Value | Ref:
        """An operand of a product."""
        if isinstance(place, ValuePlace):
            return self.value(place)
        ref = place.ref
        return Ref(self.pointer(place.pointer), ref.shape, ref.strides, ref.blocked)

    def made(self, value: Value, over: ValuePlace | None) -> None:
        """Number a value, unless it is one that a result was written over."""
        if over is None:
            self.values.append(value)


class Command(Struct, frozen=True, kw_only=True):
    """A command of a kernel, at `line` of its source."""

    line: str

    def steps(self, run: ListRun) -> Steps[None]:
        """Carry out the command on a PE."""
        raise NotImplementedError(type(self).__name__)


class Start(Command, frozen=True, kw_only=True):
    """A command that starts an operation with a number; -1 if nothing waits for it by number."""

    number: int = -1

    def started(self, run: ListRun, operation: Operation) -> Operation:
        """Keep the operation for the waits."""
        if self.number >= 0:
            run.operations[self.number] = operation
        return operation


class Load(Command, frozen=True, kw_only=True):
    """A load for which the kernel waits."""

    pointer: PointerPlace
    shape: Shape
    strides: Strides
    out: ValuePlace | None

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        out = run.out(self.out)
        loading = run.kernel.loading(run.pointer(self.pointer), self.shape, self.strides, out)
        run.made((yield from loading), self.out)


class StartedLoad(Start, frozen=True, kw_only=True):
    """A load beside the kernel."""

    pointer: PointerPlace
    shape: Shape
    strides: Strides
    out: ValuePlace | None

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        pointer, out = run.pointer(self.pointer), run.out(self.out)
        beginning = run.kernel.beginning_load(pointer, self.shape, self.strides, out)
        run.made(self.started(run, (yield from beginning)).value, self.out)


class Gather(Command, frozen=True, kw_only=True):
    """A gather, for which the kernel waits, of rows that Python integers name."""

    pointer: PointerPlace
    rows: RowList
    shape: Shape
    strides: Strides
    out: ValuePlace | None

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        pointer, out = run.pointer(self.pointer), run.out(self.out)
        gathering = run.kernel.gathering(pointer, self.rows, self.shape, self.strides, out)
        run.made((yield from gathering), self.out)


class Store(Command, frozen=True, kw_only=True):
    """A store for which the kernel waits."""

    pointer: PointerPlace
    value: ValuePlace
    strides: Strides

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        pointer, value = run.pointer(self.pointer), run.value(self.value)
        return run.kernel.storing(pointer, value, self.strides)


class StartedStore(Start, frozen=True, kw_only=True):
    """A store beside the kernel."""

    pointer: PointerPlace
    value: ValuePlace
    strides: Strides

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        pointer, value = run.pointer(self.pointer), run.value(self.value)
        self.started(run, (yield from run.kernel.beginning_store(pointer, value, self.strides)))


class Math(Command, frozen=True, kw_only=True):
    """An operation of the vector engine; the values of `call` are in `operands` and `out`."""

    call: MathCall
    operands: tuple[ValuePlace | float, ...]
    out: ValuePlace | None

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        operands = [
            run.value(each) if isinstance(each, ValuePlace) else each for each in self.operands
        ]
        call = self.call._replace(operands=operands, out=run.out(self.out))
        run.made((yield from run.kernel.computing(call)), self.out)


class ListedStep(NamedTuple):
    """A step of a chain, whose result is `nbytes` behind the first register."""

    step: ChainStep
    operands: tuple[ValuePlace | StepPlace | float, ...]
    nbytes: int


class ListedChain(Start, frozen=True, kw_only=True):
    """A chain of the vector engine, whose sources have copies at `copies` bytes of registers."""

    plan: ChainPlan
    sources: tuple[ValuePlace, ...]
    copies: tuple[int, ...]
    chain_steps: tuple[ListedStep, ...]
    outs: tuple[ValuePlace | None, ...]
    is_tuple: bool

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        chain = Chain(
            [run.value(each) for each in self.sources],
            [run.registers + each for each in self.copies],
            self._computed(run),
            self.plan,
        )
        call = ChainCall(chain, tuple(map(run.out, self.outs)), self.is_tuple)
        operation = self.started(run, (yield from run.kernel.queueing(call)))
        for result, out in zip(operation.values, self.outs, strict=True):
            run.made(result, out)

    def _computed(self, run: ListRun) -> list[ChainStep]:
        """The steps with their values, computed where the run has data."""
        results, steps = list[Value](), list[ChainStep]()
        for step, places, nbytes in self.chain_steps:
            operands = tuple([_operand(run, results, each) for each in places])
            model = step.result
            result = Value(model.shape, model.dtype, None, run.registers + nbytes)
            bound = step._replace(operands=operands, result=result)
            if run.has_data:
                result.data = step_elements(bound)
            results.append(result)
            steps.append(bound)
        return steps


def _operand(
    run: ListRun, results: Sequence[Value], place: ValuePlace | StepPlace | float
) -> Value | float:
    if isinstance(place, ValuePlace):
        return run.value(place)
    if isinstance(place, StepPlace):
        result = results[place.number]
        return result if place.view is None else part_of(result, place.view)
    return place


class Product(Start, frozen=True, kw_only=True):
    """A matrix product of the GEMM engine; the values and matrices of `gemm` are in the others."""

    gemm: Gemm
    places: dict[str, ValuePlace | RefPlace]

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        gemm, given = self.gemm, {name: run.operand(each) for name, each in self.places.items()}
        bound: Any = {name: given.get(name) for name in ("a", "b", "out", "acc", "bias", "over")}
        submitting = run.kernel.submitting(
            Gemm(dtype=gemm.dtype, activation=gemm.activation, **bound)
        )
        operation = self.started(run, (yield from submitting))
        if gemm.out is None and gemm.over is None:
            run.values.append(operation.value)


class Empty(Command, frozen=True, kw_only=True):
    """A value whose elements are not defined."""

    shape: Shape
    dtype: DType

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        run.values.append(run.kernel.empty(self.shape, self.dtype))
        yield from ()


class Settle(Command, frozen=True, kw_only=True):
    """A wait for the operations that write over a value."""

    value: ValuePlace

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        return run.kernel.settling(run.value(self.value))


class Wait(Command, frozen=True, kw_only=True):
    """A wait for the operation with a number, the last one where `is_last`."""

    operation: int
    is_last: bool = False

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        operations = run.operations
        if self.is_last:
            # It keeps values, whose elements are many bytes.
            return run.kernel.ending(operations.pop(self.operation))
        return run.kernel.ending(operations[self.operation])


class Barrier(Command, frozen=True, kw_only=True):
    """The barrier of the launch."""

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        return run.kernel.entering_barrier()


class ScratchBegin(Command, frozen=True, kw_only=True):
    """The begin of a scope of scratch."""

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        run.scopes.append((run.kernel.scratch_end, len(run.values)))
        yield from ()


class ScratchEnd(Command, frozen=True, kw_only=True):
    """The end of the innermost scope of scratch."""

    def steps(self, run: ListRun) -> Steps[None]:
        """See `Command`."""
        begin, count = run.scopes.pop()
        yield from run.kernel.ending_scratch(begin)
        # The values made inside have ended, and their numbers are used again.
        del run.values[count:]
