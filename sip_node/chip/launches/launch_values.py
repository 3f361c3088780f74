"""The values of a launch that is repeated: what its operations compute, without their times.

The records of a launch name the blocks that each operation reads and writes. So they are a program:
the operations in the order of their ends, with the arithmetic of the engines. A block in TCM or in
registers is the result of an operation before; blocks of other memories are read and written there.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from runtime.core import dtypes
from runtime.core.dtypes import DType
from runtime.core.trace import Operand, OpRecord
from runtime.language.gemm import accumulate, finish
from runtime.language.operations import compute
from runtime.language.value import Array, row_major
from sip_node.chip.launches.launch_key import NotRepeated
from sip_node.chip.launches.relocation import BlockUse
from sip_node.chip.launches.local_blocks import LocalBlocks, WrittenBytes
from sip_node.chip.mapping.strided_block import (
    StridedBlock,
    end_of,
    is_packed,
    item_bytes,
    layout_of,
)
from sip_node.chip.memory.memory import Memory

_DTYPES = {each.name: each for each in dtypes.ALL}
_WITHOUT_VALUES = frozenset({"host", "io_cpu", "pe_cpu"})


class MemoryPlace(NamedTuple):
    """A memory at physical addresses from `base` on; TCM `is_local` to a PE."""

    memory: Memory
    base: int
    is_local: bool


class ExternalBlock:
    """A block of a memory that is not local: HBM or SRAM."""

    __slots__ = ("memory", "nbytes", "offset", "rows")

    def __init__(self, block: Operand, place: MemoryPlace) -> None:
        self.memory, self.offset = place.memory, block.address - place.base
        self.nbytes: int
        self.rows: StridedBlock | None
        self.nbytes, self.rows = layout_of(block)

    def read(self) -> bytes:
        """The packed bytes of the block."""
        if self.rows is None:
            return self.memory.read(self.offset, self.nbytes)
        return self.memory.read_rows(self.offset, self.rows, 0, self.nbytes)

    def write(self, content: Any) -> None:
        """Store the packed bytes of the block."""
        if self.rows is None:
            self.memory.write(self.offset, content)
        else:
            self.memory.write_rows(self.offset, self.rows, 0, content)


class _View(NamedTuple):
    """Elements of type `dtype` among bytes: (shape, bytes of an element), the byte of the first
    one, and strides in bytes.
    """

    shape: tuple[int, ...]
    dtype: Any
    offset: int
    strides: tuple[int, ...]

    def of(self, content: Array) -> Array:
        # A view of bytes: types such as bf16 are no buffers.
        view = np.ndarray(self.shape, np.uint8, content, self.offset, self.strides)
        return view.view(self.dtype)[..., 0]


class _LocalOperand(NamedTuple):
    """The result of operation `number`, or a part of it."""

    number: int
    view: _View | None

    def of(self, results: Sequence[Any]) -> Array:
        """The elements."""
        result = results[self.number]
        return result if self.view is None else self.view.of(_bytes_of(result))


class _JoinedOperand(NamedTuple):
    """Parts of several results: `pieces` of `nbytes`, of which each begins at a byte of them."""

    nbytes: int
    pieces: tuple[tuple[int, WrittenBytes], ...]
    view: _View

    def of(self, results: Sequence[Any]) -> Array:
        """The elements."""
        content = np.zeros(self.nbytes, np.uint8)
        for begin, piece in self.pieces:
            nbytes = piece.end - piece.begin
            source = _bytes_of(results[piece.number])
            content[begin : begin + nbytes] = source[piece.offset : piece.offset + nbytes]
        return self.view.of(content)


class _Operation(NamedTuple):
    """An operation that is computed: `number` is that of its record, `reads` are those of its
    operands. It `loads` from memory, or `writes` its result there.
    """

    number: int
    evaluate: Callable[[Sequence[Any]], Any]
    reads: frozenset[int]
    loads: bool
    writes: ExternalBlock | None


class LaunchValues:
    """The values of a launch with `records`; raises `NotRepeated` for what cannot be computed.

    `place_of` finds the memory of an address; None for registers.
    """

    def __init__(
        self, records: Sequence[OpRecord], place_of: Callable[[int], MemoryPlace | None]
    ) -> None:
        self._place_of = place_of
        self._count = len(records)
        self._operations: list[_Operation] = []
        self.external: dict[tuple[int, int], ExternalBlock] = {}
        """The blocks of memory, by record and the place among its inputs, or -1 for its result."""
        self._local = LocalBlocks()
        self._blocks: dict[int, Operand] = {}
        # The shape and type of each result.
        self._shown: dict[int, tuple[tuple[int, ...], str]] = {}
        # The operands of the operation that is added.
        self._reads: set[int] = set()
        # Of operations on sums of products, which are computed in the type of the sums.
        self._sums: set[int] = set()
        for number, record in enumerate(records):
            if record.engine not in _WITHOUT_VALUES:
                self._add(number, record)
        left = self._local.writers()
        # What is left of their results in TCM.
        self._kept = {
            number: ExternalBlock(block, place)
            for number, block in self._blocks.items()
            if number in left and (place := place_of(block.address)) is not None
        }

    def compute(self) -> Array:
        """Compute all values, and write those of memories; returns the CRC-32 of each record."""
        results: list[Any] = [None] * self._count
        checksums = np.zeros(self._count, np.uint32)
        for number, evaluate, _, _, writes in self._operations:
            result = results[number] = evaluate(results)
            content = _bytes_of(result).data
            checksums[number] = crc32(content)
            if writes is not None:
                writes.write(content)
        for number, block in self._kept.items():
            block.write(_bytes_of(results[number]).data)
        return checksums

    def move(self, uses: Iterable[BlockUse], nbytes: int) -> None:
        """Read and write blocks so many bytes further."""
        for number, index, _ in uses:
            external = self.external.get((number, index))
            if external is not None:
                external.offset += nbytes
            elif index < 0 and number in self._kept:
                self._kept[number].offset += nbytes

    def check(self, records: Sequence[OpRecord]) -> None:
        """Compute the values of the launch itself, from what it has left of its operands; raises
        `NotRepeated` where a value is another one than its record has.
        """
        results: list[Any] = [None] * self._count
        # Operations on what the launch has written over: their values cannot be computed again.
        changed = set[int]()
        for number, evaluate, reads, loads, _ in self._operations:
            if reads & changed:
                changed.add(number)
                continue
            result = results[number] = evaluate(results)
            if crc32(_bytes_of(result).data) == records[number].checksum:
                continue
            if not loads:
                raise NotRepeated(f"{records[number].name} computes another value")
            changed.add(number)

    def _add(self, number: int, record: OpRecord) -> None:
        if not record.nbytes:
            return
        target = Operand(record.address, record.shape, record.dtype, record.strides)
        self._reads = set[int]()
        match record.engine, record.name:
            case "pe_dma", "store":
                evaluate = self._copied(number, record)
            case "pe_dma", ("load" | "gather"):
                evaluate = self._loaded(number, record)
            case "pe_fetch_store", ("fetch" | "store"):
                evaluate = self._copied(number, record)
            case "pe_gemm", "gemm":
                self._sums.add(number)
                evaluate = self._product(number, record)
            case "pe_math", _:
                evaluate = self._computed(number, record)
            case _:
                raise NotRepeated(f"{record.engine} {record.name}")
        is_external = self._is_external(target)
        writes = self._external_block(number, -1, target) if is_external else None
        loads = any((number, index) in self.external for index in range(len(record.inputs)))
        self._operations.append(
            _Operation(number, evaluate, frozenset(self._reads), loads, writes)
        )
        if not is_external:
            self._local.write(target, number)
            self._blocks[number] = target
            self._shown[number] = (record.shape, record.dtype)

    def _is_external(self, block: Operand) -> bool:
        place = self._place_of(block.address)
        return place is not None and not place.is_local

    def _external_block(self, number: int, index: int, block: Operand) -> ExternalBlock:
        place = self._place_of(block.address)
        assert place is not None
        made = self.external[number, index] = ExternalBlock(block, place)
        return made

    def _operand(self, block: Operand) -> _LocalOperand | _JoinedOperand:
        """A local operand."""
        pieces = self._local.read(block)
        self._reads.update(each.number for each in pieces)
        item, dtype = item_bytes(block.dtype), _DTYPES[block.dtype].numpy
        strides = block.strides or row_major(block.shape)
        view = _View(
            (*block.shape, item), dtype, 0, (*(stride * item for stride in strides), 1)
        )
        first = pieces[0]
        if len(pieces) > 1:
            begin = block.address
            return _JoinedOperand(
                end_of(block) - begin,
                tuple((each.begin - begin, each) for each in pieces),
                view,
            )
        whole = self._shown[first.number]
        if not first.offset and is_packed(block) and whole == (block.shape, block.dtype):
            return _LocalOperand(first.number, None)
        return _LocalOperand(first.number, view._replace(offset=first.offset))

    def _inputs(self, record: OpRecord) -> list[_LocalOperand | _JoinedOperand | float]:
        return [
            self._operand(each) if isinstance(each, Operand) else each for each in record.inputs
        ]

    def _loaded(self, number: int, record: OpRecord) -> Callable[..., Any]:
        shape, dtype = record.shape, _DTYPES[record.dtype].numpy
        rows = record.inputs
        if record.name == "load" and not self._is_external(_block(rows[0])):
            return self._copied(number, record)
        blocks = [
            self._external_block(number, index, _block(row))
            for index, row in enumerate(rows)
            if self._is_external(_block(row))
        ]
        if len(blocks) < len(rows) - (record.name == "gather"):
            raise NotRepeated("a gather from TCM")
        if len(blocks) == 1:
            (block,) = blocks
            return lambda _: np.frombuffer(block.read(), dtype).reshape(shape)

        def gather(_: Sequence[Any]) -> Any:
            content = b"".join([block.read() for block in blocks])
            return np.frombuffer(content, dtype).reshape(shape)

        return gather

    def _copied(self, _number: int, record: OpRecord) -> Callable[..., Any]:
        operand, dtype, shape = self._operand(_block(record.inputs[0])), record.dtype, record.shape
        source = _block(record.inputs[0])
        if source.dtype == dtype:
            return lambda results: np.ascontiguousarray(operand.of(results)).reshape(shape)
        target = _DTYPES[dtype]
        return lambda results: finish(operand.of(results), None, None, target)

    def _product(self, _number: int, record: OpRecord) -> Callable[..., Any]:
        a, b, *rest = [self._operand(_block(each)) for each in record.inputs]

        def product(results: Sequence[Any]) -> Any:
            sums = rest[0].of(results) if rest else None
            return accumulate(sums, a.of(results), b.of(results))

        return product

    def _computed(self, number: int, record: OpRecord) -> Callable[..., Any]:
        name, axis, shape = record.name, record.axis, record.shape
        dtype: DType = _DTYPES[record.dtype]
        inputs = self._inputs(record)
        first = inputs[0]
        if isinstance(first, _LocalOperand) and first.number in self._sums:
            self._sums.add(number)

            def epilogue(results: Sequence[Any]) -> Any:
                operands = [
                    each.of(results).astype(dtype.numpy, copy=False)
                    for each in inputs
                    if not isinstance(each, float | int)
                ]
                return compute(name, operands, dtype).reshape(shape)

            return epilogue

        def evaluate(results: Sequence[Any]) -> Any:
            operands = [
                each if isinstance(each, float | int) else each.of(results) for each in inputs
            ]
            return compute(name, operands, dtype, axis=axis, shape=shape).reshape(shape)

        return evaluate


def _block(each: Operand | float) -> Operand:
    if not isinstance(each, Operand):
        raise NotRepeated("a number in place of a block")
    return each


def _bytes_of(result: Array) -> Array:
    """The bytes of a result, which has no gaps."""
    return result.reshape(-1).view(np.uint8)
