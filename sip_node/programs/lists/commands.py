"""The commands of a list: those of one kernel, with open places for what differs between PEs.

A list is made once for all PEs and launches whose commands are equal but for the addresses of their
tensors, of the scratch and of the registers.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from runtime.core.dtypes import DType
from runtime.language.chain import Chain, ChainCall, ChainPlan, ChainStep
from runtime.language.chains.chain_recorder import step_elements
from runtime.language.context import BarrierScope
from runtime.language.gemm import Gemm
from runtime.language.inference import MathCall
from runtime.language.rows import RowList
from runtime.language.value import Shape, Value, part_of
from sip_node.programs.kernel_operation import Operation
from sip_node.programs.lists.places import (
    BlockPlace,
    ListedOperand,
    ListedValue,
    ListRun,
    RefPlace,
    StepPlace,
)
from sip_node.programs.program import Steps


class ListedCommand(Struct, frozen=True, kw_only=True):
    """A command of a kernel, at `line` of its source."""

    line: str

    def steps(self, run: ListRun) -> Steps[None]:
        """Carry out the command on a PE."""
        raise NotImplementedError(type(self).__name__)


class ListedStart(ListedCommand, frozen=True, kw_only=True):
    """A command that starts an operation with a number; -1 if nothing waits for it by number."""

    number: int = -1

    def started(self, run: ListRun, operation: Operation) -> Operation:
        """Keep the operation for the waits."""
        if self.number >= 0:
            run.operations[self.number] = operation
        return operation


class ListedLoad(ListedCommand, frozen=True, kw_only=True):
    """A load for which the kernel waits."""

    block: BlockPlace
    out: ListedValue | None

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        loading = run.kernel.loading(run.block(self.block), run.out(self.out))
        run.made((yield from loading), self.out)


class ListedLoadStart(ListedStart, frozen=True, kw_only=True):
    """A load beside the kernel."""

    block: BlockPlace
    out: ListedValue | None

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        beginning = run.kernel.beginning_load(run.block(self.block), run.out(self.out))
        run.made(self.started(run, (yield from beginning)).value, self.out)


class ListedGather(ListedCommand, frozen=True, kw_only=True):
    """A gather, for which the kernel waits, of rows that Python integers name."""

    block: BlockPlace
    rows: RowList
    out: ListedValue | None

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        gathering = run.kernel.gathering(run.rows(self.block, self.rows), run.out(self.out))
        run.made((yield from gathering), self.out)


class ListedGatherStart(ListedStart, frozen=True, kw_only=True):
    """A gather beside the kernel."""

    block: BlockPlace
    rows: RowList
    out: ListedValue | None

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        rows, out = run.rows(self.block, self.rows), run.out(self.out)
        operation = yield from run.kernel.beginning_gather(rows, out)
        run.made(self.started(run, operation).value, self.out)


class ListedStore(ListedCommand, frozen=True, kw_only=True):
    """A store for which the kernel waits."""

    block: BlockPlace
    value: ListedValue

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        return run.kernel.storing(run.block(self.block), run.value(self.value))


class ListedStoreStart(ListedStart, frozen=True, kw_only=True):
    """A store beside the kernel."""

    block: BlockPlace
    value: ListedValue

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        beginning = run.kernel.beginning_store(run.block(self.block), run.value(self.value))
        self.started(run, (yield from beginning))


class ListedMath(ListedCommand, frozen=True, kw_only=True):
    """An operation of the vector engine; the values of `call` are in `operands` and `out`."""

    call: MathCall
    operands: tuple[ListedOperand, ...]
    out: ListedValue | None

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        operands = [run.vector_operand(each) for each in self.operands]
        call = self.call._replace(operands=operands, out=run.out(self.out))
        run.made((yield from run.kernel.computing(call)), self.out)


class ListedStep(NamedTuple):
    """A step of a chain, whose result is `nbytes` behind the first register."""

    step: ChainStep
    operands: tuple[ListedOperand | StepPlace, ...]
    nbytes: int


class ListedChain(ListedStart, frozen=True, kw_only=True):
    """A chain of the vector engine, whose sources have copies at `copies` bytes of registers."""

    plan: ChainPlan
    sources: tuple[ListedValue, ...]
    copies: tuple[int, ...]
    chain_steps: tuple[ListedStep, ...]
    outs: tuple[ListedValue | None, ...]
    is_tuple: bool

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
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
            # Field by field: `_replace` takes three times as long.
            bound = ChainStep(
                step.name,
                operands,
                step.inputs,
                result,
                step.axis,
                step.reduces,
                step.keep_dims,
            )
            if run.has_data:
                result.data = step_elements(bound)
            results.append(result)
            steps.append(bound)
        return steps


def _operand(
    run: ListRun, results: Sequence[Value], place: ListedOperand | StepPlace
) -> Value | float:
    if not isinstance(place, StepPlace):
        return run.vector_operand(place)
    result = results[place.number]
    return result if place.view is None else part_of(result, place.view)


class ListedProduct(ListedStart, frozen=True, kw_only=True):
    """A matrix product of the GEMM engine; the values and matrices of `gemm` are in the others."""

    gemm: Gemm
    places: dict[str, ListedValue | RefPlace]

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        gemm, given = self.gemm, {name: run.operand(each) for name, each in self.places.items()}
        bound: Any = {name: given.get(name) for name in ("a", "b", "out", "acc", "bias", "over")}
        submitting = run.kernel.submitting(
            Gemm(dtype=gemm.dtype, activation=gemm.activation, **bound)
        )
        operation = self.started(run, (yield from submitting))
        if gemm.out is None and gemm.over is None:
            run.values.append(operation.value)


class ListedEmpty(ListedCommand, frozen=True, kw_only=True):
    """A value whose elements are not defined."""

    shape: Shape
    dtype: DType

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        run.values.append(run.kernel.empty(self.shape, self.dtype))
        yield from ()


class ListedPlaced(ListedCommand, frozen=True, kw_only=True):
    """A value at `nbytes` of the scratch."""

    shape: Shape
    dtype: DType
    nbytes: int
    is_zero: bool

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        address = run.kernel.scratch_begin + self.nbytes
        run.values.append(run.kernel.placed(self.shape, self.dtype, address, is_zero=self.is_zero))
        yield from ()


class ListedEnded(ListedCommand, frozen=True, kw_only=True):
    """The end of the values with numbers: they have many elements."""

    numbers: tuple[int, ...]

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        run.end_values(self.numbers)
        yield from ()


class ListedSettle(ListedCommand, frozen=True, kw_only=True):
    """A wait for the operations that write over a value."""

    value: ListedValue

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        return run.kernel.settling(run.value(self.value))


class ListedWait(ListedCommand, frozen=True, kw_only=True):
    """A wait for the operation with a number, the last one where `is_last`."""

    operation: int
    is_last: bool = False

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        # It keeps values, whose elements are many bytes.
        take = run.operations.pop if self.is_last else run.operations.__getitem__
        return run.kernel.ending(take(self.operation))


class ListedBarrier(ListedCommand, frozen=True, kw_only=True):
    """The barrier of the launch, or of its PEs in a cube."""

    scope: BarrierScope

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        return run.kernel.entering_barrier(self.scope)


class ListedScratchBegin(ListedCommand, frozen=True, kw_only=True):
    """The begin of a scope of scratch."""

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        run.scopes.append((run.kernel.scratch_end, len(run.values)))
        yield from ()


class ListedScratchEnd(ListedCommand, frozen=True, kw_only=True):
    """The end of the innermost scope of scratch."""

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        begin, count = run.scopes.pop()
        yield from run.kernel.ending_scratch(begin)
        # The values made inside have ended, and their numbers are used again.
        del run.values[count:]
