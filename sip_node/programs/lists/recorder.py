"""Records the commands of a kernel: its function runs once, without simulated time and without
elements, and its calls become a list.

The function sees values that have a shape and a type, pointers without an address, and pending
operations that end at once. What a list cannot hold open, such as an element or the number of a PE,
ends the recording with `NotListed`, which no kernel catches: then the function runs on each PE.
"""

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from msgspec import structs

from runtime.core.dtypes import DType
from runtime.language.caller import kernel_line
from runtime.language.chain import Chain, ChainCall, VectorRegisters
from runtime.language.context import BarrierScope
from runtime.language.gemm import Gemm
from runtime.language.inference import MathCall
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.program_ids import ProgramIds
from runtime.language.refusals import PENDING, PENDING_ADVICE, refuse_operators
from runtime.language.rows import RowGather
from runtime.language.running import NO_OPTIONS, MathOptions
from runtime.language.value import Array, Pointer, Ref, Shape, Strides, Value
from runtime.model.addresses import VECTOR_BYTES
from runtime.model.tiles import TileSize
from sip_node.programs.kernel_memory import KernelScratch
from sip_node.programs.lists.commands import (
    ListedBarrier,
    ListedChain,
    ListedCommand,
    ListedEmpty,
    ListedGather,
    ListedLoad,
    ListedLoadStart,
    ListedMath,
    ListedProduct,
    ListedScratchBegin,
    ListedScratchEnd,
    ListedSettle,
    ListedStart,
    ListedStep,
    ListedStore,
    ListedStoreStart,
    ListedWait,
)
from sip_node.programs.lists.not_listed import NotListed
from sip_node.programs.lists.open_ids import OpenId
from sip_node.programs.lists.open_numbers import OpenNumber
from sip_node.programs.lists.places import (
    BlockPlace,
    ListedOperand,
    ListedValue,
    PointerPlace,
    RefPlace,
    StepPlace,
    ValuePlace,
    view_of,
)

REGISTERS = 1 << 60
"""The address of the first register while a list is recorded: no value in TCM has it."""


class BasedPointer(Pointer):
    """A pointer `nbytes` behind that with the number `base` among those of the arguments, whose
    addresses are open.
    """

    def __init__(self, base: int, nbytes: OpenId, dtype: DType) -> None:
        # A frozen class of data: its fields are set as its own constructor sets them.
        for name, value in (("base", base), ("nbytes", nbytes), ("dtype", dtype)):
            object.__setattr__(self, name, value)

    base: int
    nbytes: OpenId

    @property
    def place(self) -> PointerPlace:
        """The place of the pointer in a list."""
        factors = tuple(self.nbytes.factors.items())
        return PointerPlace(self.base, self.nbytes.number, factors, self.dtype)

    @property
    def address(self) -> NoReturn:  # pyright: ignore[reportIncompatibleVariableOverride] - no address is known
        """An address that is open."""
        raise NotListed("the kernel reads an address")

    def __add__(self, elements: int) -> "BasedPointer":
        return self._moved(elements, 1)

    __radd__ = __add__

    def _moved(self, elements: int, sign: int) -> "BasedPointer":
        moved: object = elements
        if not (type(moved) is int or isinstance(moved, OpenId)):
            raise NotListed("a pointer is moved by something else than an integer")
        return BasedPointer(
            self.base, self.nbytes + moved * (sign * self.dtype.itemsize), self.dtype
        )

    def __int__(self) -> int:
        return self.address

    def __eq__(self, other: object) -> bool:
        return self.address == other

    def __hash__(self) -> int:
        return hash(self.address)


class RecordedOperation:
    """An operation in flight while a list is recorded."""

    def __init__(
        self, recorder: "CommandRecorder", number: int, result: Value | tuple[Value, ...] | None
    ) -> None:
        self._recorder, self._number, self.result = recorder, number, result

    def wait(self) -> Any:
        """Record the wait; the result."""
        self._recorder.add(ListedWait, operation=self._number)
        return self.result


refuse_operators(RecordedOperation, PENDING, PENDING_ADVICE)


class CommandRecorder:
    """The `KernelContext` in which the function of a kernel is recorded.

    A list has at most `most` commands. `registers` are those of the vector engine. The ids of the
    program are open, but those on the axes `closed`, which are those of `ids`: the list is one for
    these.
    """

    has_data = False

    def __init__(
        self,
        scratch: KernelScratch,
        tile: TileSize,
        registers: VectorRegisters,
        ids: ProgramIds,
        most: int,
        *,
        closed: Collection[int],
    ) -> None:
        self.gemm_tile = tile
        self.vector_registers = registers._replace(address=REGISTERS)
        self.scratch_memory, self.ids, self._most = scratch, ids, most
        self._closed = closed
        self._line = ""
        self._commands: list[ListedCommand] = []
        # The values that the commands have made and that exist, in the order of their numbers.
        self.values: list[Value] = []
        self._operations = 0
        # Whether an operation beside the kernel writes over a value that exists.
        self.writes_over = False

    def commands(self) -> tuple[ListedCommand, ...]:
        """The list: operations are kept up to the last wait for them."""
        last: dict[int, int] = {}
        for index, each in enumerate(self._commands):
            if isinstance(each, ListedWait):
                last[each.operation] = index
        return tuple(
            structs.replace(each, is_last=last[each.operation] == index)
            if isinstance(each, ListedWait)
            else structs.replace(each, number=-1)
            if isinstance(each, ListedStart) and each.number not in last
            else each
            for index, each in enumerate(self._commands)
        )

    def add(self, kind: type[ListedCommand], **fields: Any) -> None:
        """Append a command at the line of the kernel that runs."""
        if len(self._commands) == self._most:
            raise NotListed(f"more than {self._most:,} commands")
        self._commands.append(kind(line=self._line or kernel_line(), **fields))

    def locate(self, line: str) -> None:
        """See `KernelContext`."""
        self._line = line

    def program_id(self, axis: int) -> Any:
        """See `KernelContext`."""
        own = self.ids.program_id(axis)
        return own if axis in self._closed or not self.ids.has(axis) else OpenId({axis: 1})

    def num_programs(self, axis: int) -> int:
        """See `KernelContext`."""
        return self.ids.num_programs(axis)

    def elements_of(self, value: Value) -> Array | None:
        """See `KernelContext`."""
        raise NotListed(f"the kernel reads elements of {value!r}")

    def load(self, block: UsedBlock, out: Value | None = None) -> Value:
        """See `KernelContext`."""
        place, over = self.block_place(*block), self._out(out)
        self.add(ListedLoad, block=place, out=over)
        return self.made(block.shape, place.pointer.dtype) if out is None else out

    def load_async(self, block: UsedBlock, out: Value | None = None) -> RecordedOperation:
        """See `KernelContext`."""
        self.writes_over |= out is not None
        place, over, number = self.block_place(*block), self._out(out), self.started()
        self.add(ListedLoadStart, block=place, out=over, number=number)
        value = self.made(block.shape, place.pointer.dtype) if out is None else out
        return RecordedOperation(self, number, value)

    def gather(self, rows: RowGather, out: Value | None = None) -> Value:
        """See `KernelContext`."""
        pointer, named, shape, strides = rows
        if named.value is not None:
            raise NotListed("rows that elements name")
        place, over = self.block_place(pointer, shape, strides), self._out(out)
        self.add(ListedGather, block=place, rows=named, out=over)
        return self.made(rows.whole, place.pointer.dtype) if out is None else out

    def store(self, block: UsedBlock, value: Value) -> None:
        """See `KernelContext`."""
        self.add(ListedStore, block=self.block_place(*block), value=self.place(value))

    def store_async(self, block: UsedBlock, value: Value) -> RecordedOperation:
        """See `KernelContext`."""
        number, place = self.started(), self.place(value)
        self.add(ListedStoreStart, block=self.block_place(*block), value=place, number=number)
        return RecordedOperation(self, number, None)

    def math(
        self,
        name: str,
        operands: Sequence[Value | float],
        options: MathOptions = NO_OPTIONS,
        out: Value | None = None,
    ) -> Value:
        """See `KernelContext`."""
        call = MathCall.checked(name, operands, options, out)
        places = tuple(map(self._operand, operands))
        listed = call._replace(operands=(), out=None)
        self.add(ListedMath, call=listed, operands=places, out=self._out(out))
        return self.made(call.whole, call.dtype) if out is None else out

    def settle(self, value: Value) -> None:
        """See `KernelContext`."""
        place = self.place(value)
        if self.writes_over:
            self.add(ListedSettle, value=place)

    def run_chain(self, call: ChainCall) -> RecordedOperation:
        """See `KernelContext`."""
        self.writes_over |= any(out is not None for out in call.outs)
        chain, number = call.chain, self.started()
        self.add(
            ListedChain,
            plan=chain.plan,
            sources=tuple(map(self.place, chain.sources)),
            copies=tuple(each - REGISTERS for each in chain.copies),
            chain_steps=tuple(self._chain_steps(chain)),
            outs=tuple(map(self._out, call.outs)),
            is_tuple=call.is_tuple,
            number=number,
        )
        results = [
            self.made(value.shape, value.dtype) if out is None else out
            for out, value in zip(call.outs, call.values, strict=True)
        ]
        return RecordedOperation(self, number, call.returned(results))

    def _chain_steps(self, chain: Chain) -> Generator[ListedStep]:
        numbers = {step.result.address: index for index, step in enumerate(chain.steps)}

        def place(operand: Value | float) -> ListedOperand | StepPlace:
            if not isinstance(operand, Value) or not (
                REGISTERS <= operand.address < REGISTERS + VECTOR_BYTES
            ):
                return self._operand(operand)
            index = numbers[operand.address]
            return StepPlace(index, view_of(chain.steps[index].result, operand))

        for step in chain.steps:
            yield ListedStep(
                step._replace(operands=()),
                tuple(map(place, step.operands)),
                step.result.address - REGISTERS,
            )

    def gemm(self, gemm: Gemm) -> RecordedOperation:
        """See `KernelContext`."""
        self.writes_over |= gemm.over is not None
        number, places = self.started(), dict[str, ListedValue | RefPlace]()
        for name in ("a", "b", "out", "acc", "bias", "over"):
            operand = getattr(gemm, name)
            if isinstance(operand, Ref):
                places[name] = RefPlace(self.pointer_place(operand.pointer), operand)
            elif operand is not None:
                places[name] = self.place(operand)
        self.add(ListedProduct, gemm=gemm, places=places, number=number)
        result = gemm.over
        if gemm.out is None and gemm.over is None:
            result = self.made(gemm.shape, gemm.dtype)
        return RecordedOperation(self, number, result)

    def barrier(self, scope: BarrierScope) -> None:
        """See `KernelContext`."""
        self.add(ListedBarrier, scope=scope)

    def empty(self, shape: Shape, dtype: DType) -> Value:
        """See `KernelContext`."""
        self.add(ListedEmpty, shape=shape, dtype=dtype)
        return self.made(shape, dtype)

    @contextmanager
    def scratch(self) -> Generator[None]:
        """See `KernelContext`."""
        self.add(ListedScratchBegin)
        begin, count = self.scratch_memory.end, len(self.values)
        yield
        self.add(ListedScratchEnd)
        self.scratch_memory.release_from(begin)
        del self.values[count:]

    def __getattr__(self, name: str) -> NoReturn:
        raise NotListed(f"the kernel calls {name}")

    def pointer_place(self, pointer: Pointer) -> PointerPlace:
        """The place of a pointer that a command uses."""
        if not isinstance(pointer, BasedPointer):
            raise NotListed("a pointer that is no argument")
        return pointer.place

    def block_place(self, pointer: Pointer, shape: Shape, strides: Strides) -> BlockPlace:
        """The place of a block that a command uses."""
        return BlockPlace(self.pointer_place(pointer), shape, strides)

    def started(self) -> int:
        """The number of an operation that starts."""
        self._operations += 1
        return self._operations - 1

    def made(self, shape: Shape, dtype: DType) -> Value:
        """A value that a command makes."""
        value = self.scratch_memory.new(shape, dtype)
        self.values.append(value)
        return value

    def _out(self, out: Value | None) -> ListedValue | None:
        return None if out is None else self.place(out)

    def _operand(self, operand: Value | float) -> ListedOperand:
        """The place of a value, the formula of an open number, or a number itself."""
        if isinstance(operand, Value):
            return self.place(operand)
        number: Any = operand
        return number.formula if type(number) is OpenNumber else operand

    def place(self, value: Value) -> ListedValue:
        """The place of a value, or of a view of one."""
        return self.made_place(value)

    def made_place(self, value: Value) -> ValuePlace:
        """The place of a value that a command has made, or of a view of one."""
        start, end = value.extent
        for number in range(len(self.values) - 1, -1, -1):
            made = self.values[number]
            first, behind = made.extent
            if first <= start and end <= behind and made.dtype == value.dtype:
                return ValuePlace(number, view_of(made, value))
        raise NotListed(f"{value!r} is no value that the kernel has made")
