"""The kernel of operators that work on whole rows of matrices: softmax, normalisation, reductions.

Blocks of rows are a stream: each passes through a row of chains of the vector engine, which reduce
along the rows. What one chain leaves to another one stays in the scratch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from runtime.core.dtypes import DType
from runtime.device.kernels.conversions import in_type
from runtime.device.kernels.shared_rows import SharedRow
from runtime.device.kernels.streamed import BlockRing, StagePace, streamed
from runtime.language import tl
from runtime.language.value import Pointer, Shape, Value

_EXPANDED = 512
"""The columns of a row that are expanded at once: the registers of the vector engine hold them."""
Function = Callable[..., Value | tuple[Value, ...]]
Form = Literal["matrix", "row", "column"]


class RowChain(NamedTuple):
    """A chain of the vector engine on a block of rows: a function of operands by their names, in
    the type of the computation, with the names of its results, first matrices, then columns. From
    here on, the operand that it `keeps` is in the type of the computation.
    """

    function: Function
    operands: tuple[str, ...]
    matrices: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    keeps: str | None = None


class RowTensor(NamedTuple):
    """A tensor of a launch: a matrix, one row for all rows, or one number for each row."""

    name: str
    form: Form
    dtype: DType


class RowOperand(NamedTuple):
    """A tensor of a launch at its pointer; `shared` is a row as the PEs of a cube share it."""

    tensor: RowTensor
    pointer: Pointer
    shared: SharedRow | None = None

    def from_row(self, row: int, columns: int) -> "RowOperand":
        """The tensor from a row of `columns` elements on."""
        start = {"matrix": row * columns, "row": 0, "column": row}[self.tensor.form]
        return self._replace(pointer=self.pointer + start)


@dataclass(eq=False)
class RowValue:
    """Values of blocks of one name, which the stage `first` writes and others use until `last`."""

    form: Form
    dtype: DType
    first: int
    last: int

    def shape(self, height: int, columns: int) -> Shape:
        """The shape of the value of a block with a number of rows."""
        return height, columns if self.form == "matrix" else 1


class RowPlan:
    """The values of the chains of a kernel, with the stages that use them at a pace."""

    def __init__(
        self,
        chains: Sequence[RowChain],
        inputs: Sequence[RowTensor],
        outs: Sequence[RowTensor],
        dtype: DType,
        pace: StagePace,
    ) -> None:
        self._pace = pace
        self.inputs = {
            each.name: RowValue(each.form, each.dtype, 0, 0)
            for each in inputs
            if each.form != "row"
        }
        self.values = [*self.inputs.values()]
        self.operands = list[list[RowValue | str]]()
        self.results = list[list[RowValue]]()
        types = {each.name: each.dtype for each in outs}
        named = dict(self.inputs)
        for number, chain in enumerate(chains):
            stage = pace.behind(number)
            self.operands.append([named.get(name, name) for name in chain.operands])
            for each in self.operands[-1]:
                if isinstance(each, RowValue):
                    each.last = stage
            written = dict[str, RowValue]()
            if chain.keeps is not None and named[chain.keeps].dtype != dtype:
                written[chain.keeps] = RowValue("matrix", dtype, stage, stage)
            for name in (*chain.matrices, *chain.columns):
                form = "matrix" if name in chain.matrices else "column"
                written[name] = RowValue(form, types.get(name, dtype), stage, stage)
            self.results.append([*written.values()])
            self.values += written.values()
            named |= written
        self.outs = {each.name: named[each.name] for each in outs}
        for each in self.outs.values():
            each.last = pace.behind(len(chains))

    def row_bytes(self, columns: int) -> int:
        """Scratch for each row of a block."""
        return sum(
            self.slots(each) * each.dtype.itemsize * each.shape(1, columns)[1]
            for each in self.values
        )

    def slots(self, value: RowValue) -> int:
        """The blocks of a value that are in the scratch at once."""
        return self._pace.slots(value.first, value.last)


@dataclass(frozen=True)
class RowBlocks:
    """`height` rows of `columns` are a block; the stages work on blocks at a `pace`.

    If a row has more vectors than registers, it `expands` to a matrix. Operands and results with a
    number for each row pass by blocks, or all `columns_at_once`: a few numbers take as long to
    memory as a block.
    """

    height: int
    columns: int
    pace: StagePace
    expands: bool
    columns_at_once: bool


def rowwise(
    chains: Sequence[RowChain],
    dtype: DType,
    count: int,
    blocks: RowBlocks,
    inputs: Sequence[RowOperand],
    outs: Sequence[RowOperand],
) -> None:
    """Kernel: the chains on the `count` rows of this PE, in `dtype`. The next blocks are loaded and
    those before are stored while the vector engine computes.
    """
    with tl.scratch():
        _RowStream(chains, dtype, count, blocks, inputs, outs).run()


class _RowStream:
    """The stages of a kernel on its blocks."""

    def __init__(
        self,
        chains: Sequence[RowChain],
        dtype: DType,
        count: int,
        blocks: RowBlocks,
        inputs: Sequence[RowOperand],
        outs: Sequence[RowOperand],
    ) -> None:
        self._chains, self._dtype, self._count, self._blocks = chains, dtype, count, blocks
        self._plan = RowPlan(
            chains,
            [each.tensor for each in inputs],
            [each.tensor for each in outs],
            dtype,
            blocks.pace,
        )
        self._rows = _RepeatedRows(
            [each for each in inputs if each.tensor.form == "row"], dtype, blocks
        )
        self._inputs = self._in_stream([each for each in inputs if each.tensor.form != "row"])
        self._outs = self._in_stream(outs)
        self._columns_in, self._columns_out = (
            [each for each in operands if each.tensor.form == "column" and blocks.columns_at_once]
            for operands in (inputs, outs)
        )
        named = self._plan.inputs | self._plan.outs
        self._whole = {
            named[each.tensor.name]: tl.empty((count, 1), each.tensor.dtype)
            for each in (*self._columns_in, *self._columns_out)
        }
        rows = min(blocks.height, count)
        self._rings = {
            each: BlockRing(
                self._plan.slots(each),
                rows * each.shape(1, blocks.columns)[1],
                each.dtype,
            )
            for each in self._plan.values
            if each not in self._whole
        }
        self._loads: dict[int, list[tl.PendingValue]] = {}
        self._stores: list[tl.PendingResult] = []

    def _in_stream(self, operands: Sequence[RowOperand]) -> list[RowOperand]:
        at_once = self._blocks.columns_at_once
        return [each for each in operands if not (at_once and each.tensor.form == "column")]

    def run(self) -> None:
        self._rows.start()
        columns = [
            tl.load_async(
                each.pointer, (self._count, 1), out=self._whole[self._plan.inputs[each.tensor.name]]
            )
            for each in self._columns_in
        ]
        self._loads[0] = columns
        stages = [self._stage(number) for number in range(len(self._chains))]
        count = tl.cdiv(self._count, self._blocks.height)
        streamed(count, self._blocks.pace, self._load, stages, self._store)
        for each in self._columns_out:
            tl.store_async(each.pointer, self._whole[self._plan.outs[each.tensor.name]])

    def _load(self, block: int) -> None:
        self._loads.setdefault(block, []).extend(
            tl.load_async(
                each.from_row(block * self._blocks.height, self._blocks.columns).pointer,
                value.shape(self._height(block), self._blocks.columns),
                out=self._value(value, block),
            )
            for each in self._inputs
            for value in [self._plan.inputs[each.tensor.name]]
        )

    def _stage(self, number: int) -> Callable[[int], None]:
        chain, results = self._chains[number], self._plan.results[number]
        keeps = chain.keeps if len(results) > len(chain.matrices) + len(chain.columns) else None

        def function(*given: Value) -> tuple[Value, ...]:
            wide = [in_type(each, self._dtype) for each in given]
            returned = chain.function(*wide)
            values = returned if isinstance(returned, tuple) else (returned,)
            if keeps is not None:
                values = wide[chain.operands.index(keeps)], *values
            pairs = zip(values, results, strict=True)
            return tuple(in_type(each, result.dtype) for each, result in pairs)

        def issue(block: int) -> None:
            for each in self._loads.pop(block, ()):
                each.wait()
            operands = [
                self._value(each, block)
                if isinstance(each, RowValue)
                else self._rows.values[each][: self._height(block)]
                for each in self._plan.operands[number]
            ]
            out = tuple(self._value(each, block) for each in results)
            tl.fused_async(function, *operands, out=out)

        return issue

    def _store(self, block: int) -> None:
        for each in self._stores:
            each.wait()
        self._stores = [
            tl.store_async(
                each.from_row(block * self._blocks.height, self._blocks.columns).pointer,
                self._value(self._plan.outs[each.tensor.name], block),
            )
            for each in self._outs
        ]

    def _value(self, value: RowValue, block: int) -> Value:
        if value in self._whole:
            start = block * self._blocks.height
            return self._whole[value][start : start + self._height(block)]
        shape = value.shape(self._height(block), self._blocks.columns)
        return self._rings[value].of(block, shape)

    def _height(self, block: int) -> int:
        return min(self._blocks.height, self._count - block * self._blocks.height)


class _RepeatedRows:
    """The rows for all rows of a matrix, in the type of the computation: each is there when a chain
    uses the first of them. A row of many columns is a block in which all rows are equal to it.
    """

    def __init__(self, operands: Sequence[RowOperand], dtype: DType, blocks: RowBlocks) -> None:
        self._operands, self._dtype, self._blocks = operands, dtype, blocks
        self._parts: list[tl.PendingValue] = []

    def start(self) -> None:
        """Start to load the rows, or those parts of them which other PEs get from this one."""
        for each in self._operands:
            if each.shared is not None:
                self._parts.append(each.shared.loading(each.pointer))
            else:
                self._parts.append(tl.load_async(each.pointer, (1, self._blocks.columns)))

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """The rows by their names."""
        pairs = list(zip(self._operands, self._parts, strict=True))
        shared = [(each.shared, part) for each, part in pairs if each.shared is not None]
        if shared:
            stores = [each.storing(part.wait()) for each, part in shared]
            for store in stores:
                store.wait()
            tl.barrier()
        gathered = [
            None if each.shared is None else each.shared.gathering(self._blocks.columns)
            for each in self._operands
        ]
        rows = dict[str, Value]()
        for (each, part), loads in zip(pairs, gathered, strict=True):
            if loads is None:
                row = part.wait()
            else:
                row, pending = loads
                for load in pending:
                    load.wait()
            rows[each.tensor.name] = self._expanded(in_type(row, self._dtype))
        return rows

    def _expanded(self, row: Value) -> Value:
        if not self._blocks.expands:
            return row
        height, columns = self._blocks.height, self._blocks.columns
        block = tl.empty((height, columns), self._dtype)
        for column in range(0, columns, _EXPANDED):
            part = slice(column, min(column + _EXPANDED, columns))
            zeros = self._zeros[:, : part.stop - column]
            tl.fused_async(tl.add, zeros, row[:, part], out=block[:, part])
        return block

    @cached_property
    def _zeros(self) -> Value:
        return tl.zeros((self._blocks.height, min(_EXPANDED, self._blocks.columns)), self._dtype)
