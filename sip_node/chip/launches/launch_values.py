"""The values of a launch that is repeated: what its operations compute, without their times.

The records of a launch name the blocks that each operation reads and writes. So they are a program:
the operations in the order of their ends, with the arithmetic of the engines. A block in TCM or in
registers is the result of operations before; blocks of other memories are read and written there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime.core.dtypes import BY_NAME
from runtime.core.trace import Operand, OpRecord
from runtime.language.functions import ELEMENTWISE
from runtime.language.gemm import accumulate, finish
from runtime.language.operations import element, evaluator
from runtime.language.value import Array
from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.launches.equal_values import EqualValues
from sip_node.chip.launches.value_operands import (
    LocalOperand,
    WholeResult,
    bytes_of,
    local_operand,
)
from sip_node.chip.launches.written_bytes import WrittenMemory
from sip_node.chip.mapping.strided_block import layout_of
from sip_node.chip.memory.memory import Memory
from sip_node.kernel import checksums

Evaluate = Callable[[Sequence[Any]], Any]
"""Computes a result from those of the operations before."""
BlockUse = tuple[int, int]
"""A block of an operation: the number of its record, and its place among the inputs, or -1 for its
result.
"""
_WITHOUT_VALUES = frozenset({"host", "io_cpu", "pe_cpu"})


class MemoryPlace(NamedTuple):
    """A memory at physical addresses from `base` on; TCM `is_local` to a PE."""

    memory: Memory
    base: int
    is_local: bool


class BytesInMemory:
    """A block of a memory, as packed bytes."""

    __slots__ = ("_nbytes", "_rows", "memory", "offset")

    def __init__(self, block: Operand, place: MemoryPlace) -> None:
        self.memory, self.offset = place.memory, block.address - place.base
        self._nbytes, self._rows = layout_of(block)

    def read(self) -> bytes:
        """The bytes of the block."""
        if self._rows is None:
            return self.memory.read(self.offset, self._nbytes)
        return self.memory.read_rows(self.offset, self._rows, 0, self._nbytes)

    def write(self, content: bytes) -> None:
        """Store the bytes of the block."""
        if self._rows is None:
            self.memory.write(self.offset, content)
        else:
            self.memory.write_rows(self.offset, self._rows, 0, content)


class ComputedOperation(NamedTuple):
    """An operation that is computed: `number` is that of its record. It copies the whole result of
    operation `source`, or evaluates its own; its result goes to `target` in memory, if any. No
    later operation uses the results `dead`.
    """

    number: int
    source: int
    evaluate: Evaluate
    target: BytesInMemory | None
    dead: Sequence[int] = ()


class LaunchValues:
    """The values of a launch with `records`; raises `NotRepeated` for what cannot be computed.

    `place_of` finds the memory of an address; None for registers.
    """

    def __init__(
        self, records: Sequence[OpRecord], place_of: Callable[[int], MemoryPlace | None]
    ) -> None:
        self._records, self._place_of = records, place_of
        self._operations: list[ComputedOperation] = []
        # The blocks of memory by record, and the place among its inputs, or -1 for its result.
        self._blocks: dict[tuple[int, int], BytesInMemory] = {}
        # The operations of which an operation uses the results, as (operation, of which one).
        self._used: list[tuple[int, int]] = []
        # The operations whose values are those of an earlier one.
        self._equal = EqualValues()
        self._same_as: dict[int, int] = {}
        # The blocks of each load, and pairs of blocks that are the same for two of them.
        self._loads: dict[int, Sequence[BytesInMemory]] = {}
        self._same_blocks: list[tuple[BytesInMemory, BytesInMemory]] = []
        # The operands of operations with numbers, by record.
        self._inputs: dict[int, list[LocalOperand | float | Array]] = {}
        self._results = [
            Operand(each.address, each.shape, each.dtype, each.strides) for each in records
        ]
        self._local, self._written, self._read = WrittenMemory(), WrittenMemory(), WrittenMemory()
        # Operations on sums of products, which are computed in the type of the sums.
        self._sums: set[int] = set()
        in_tcm = dict[int, MemoryPlace]()
        for number, record in enumerate(records):
            if record.engine in _WITHOUT_VALUES or not record.nbytes:
                continue
            place = place_of(record.address)
            self._add(number, record, place)
            if place is not None and place.is_local:
                in_tcm[number] = place
        # What is left of their results in TCM.
        left = self._local.writers()
        for number, place in in_tcm.items():
            if number in left:
                self._blocks[number, -1] = BytesInMemory(self._results[number], place)
        # All of them, for launches in which blocks that were the same are several.
        self._apart = [*self._bounded(self._operations, self._used)]
        shared = [
            each._replace(source=self._same_as.get(each.number, each.source))
            for each in self._operations
        ]
        self._operations = [*self._bounded(shared, [*self._used, *self._same_as.items()])]

    def compute(self) -> Array:
        """Compute all values, and write those of memories; returns the CRC-32 of each record."""
        with np.errstate(all="ignore"):
            return self._computed_all()

    def _computed_all(self) -> Array:
        count = len(self._records)
        results: list[Any] = [None] * count
        contents: list[bytes] = [b""] * count
        crcs = np.zeros(count, np.uint32)
        checksum_of = checksums.checksum_of
        is_shared = all(each.offset == other.offset for each, other in self._same_blocks)
        operations = self._operations if is_shared else self._apart
        for number, source, evaluate, target, dead in operations:
            if source >= 0:
                results[number], crcs[number] = results[source], crcs[source]
                content = contents[number] = contents[source]
            else:
                result = results[number] = evaluate(results)
                content = contents[number] = result.tobytes()
                crcs[number] = checksum_of(content)
            if target is not None:
                target.write(content)
            # All results of a launch are more bytes than fit into caches.
            for each in dead:
                results[each], contents[each] = None, b""
        return crcs

    def blocks(self, uses: Iterable[BlockUse]) -> list[BytesInMemory]:
        """The blocks of memory among those of records, which other launches have elsewhere."""
        known = [self._blocks.get(each) for each in uses]
        return [each for each in known if each is not None]

    def set_number(self, number: int, index: int, value: float) -> None:
        """Let an input of a record be another number."""
        self._inputs[number][index] = _number(self._records[number], value)

    def _add(self, number: int, record: OpRecord, place: MemoryPlace | None) -> None:
        source, evaluate = self._evaluated(number, record)
        if source >= 0:
            self._equal.copy(number, source)
        result = self._results[number]
        if place is None or place.is_local:
            self._local.write(result, number)
        else:
            self._check_order(number, result, self._written, self._read)
            self._written.write(result, number)
            self._blocks[number, -1] = BytesInMemory(result, place)
        self._operations.append(ComputedOperation(number, source, evaluate, None))

    def _bounded(
        self, operations: Sequence[ComputedOperation], used_by: Iterable[tuple[int, int]]
    ) -> Iterator[ComputedOperation]:
        """The operations with their targets in memory, and the results that end with each, of
        which the first of `used_by` uses the second.
        """
        last = {each.number: each.number for each in operations}
        for number, used in used_by:
            last[used] = max(last[used], number)
        dead = dict[int, list[int]]()
        for used, number in last.items():
            dead.setdefault(number, []).append(used)
        for each in operations:
            number = each.number
            target = self._blocks.get((number, -1))
            yield each._replace(target=target, dead=tuple(dead.get(number, ())))

    def _evaluated(self, number: int, record: OpRecord) -> tuple[int, Evaluate]:
        """The operation whose result a record copies, or -1; and what it evaluates."""
        match record.engine, record.name:
            case "pe_dma", ("load" | "gather"):
                if (loaded := self._loaded(number, record)) is not None:
                    return -1, loaded
                return self._copied(number, record)
            case ("pe_dma", ("store" | "ipcq_send" | "ipcq_recv")) | (
                "pe_fetch_store",
                ("fetch" | "store"),
            ):
                return self._copied(number, record)
            case "pe_gemm", "gemm":
                self._sums.add(number)
                return -1, self._product(number, record)
            case "pe_math", _:
                return -1, self._computed(number, record)
            case _:
                raise NotRepeated(f"{record.engine} {record.name}")

    def _check_order(self, number: int, block: Operand, *others: WrittenMemory) -> None:
        """Raise `NotRepeated` unless what else uses a block has ended when an operation begins."""
        start_ps = self._records[number].start_ps
        for other in others:
            if any(self._records[each].end_ps > start_ps for each in other.touched(block)):
                raise NotRepeated("memory that is written while it is used")

    def _operand(self, number: int, block: Operand | float) -> LocalOperand:
        """A local operand of an operation."""
        if not isinstance(block, Operand):
            raise NotRepeated("a number in place of a block")
        operand = local_operand(block, self._local, self._results)
        self._used += [(number, each) for each in operand.numbers]
        return operand

    def _loaded(self, number: int, record: OpRecord) -> Evaluate | None:
        """The rows that a record loads from memory; None where it loads from TCM."""
        shape, dtype = record.shape, BY_NAME[record.dtype].numpy
        blocks, written = list[BytesInMemory](), -1
        for index, row in enumerate(record.inputs):
            place = self._place_of(row.address) if isinstance(row, Operand) else None
            if place is None or place.is_local or not isinstance(row, Operand):
                continue
            self._check_order(number, row, self._written)
            self._read.write(row, number)
            written = max([written, *self._written.touched(row)])
            blocks.append(BytesInMemory(row, place))
            self._blocks[number, index] = blocks[-1]
        if not blocks and record.name == "load":
            return None
        first = self._equal.loaded(number, record, written)
        self._loads[number] = blocks
        if first >= 0:
            self._same_as[number] = first
            self._same_blocks += zip(blocks, self._loads[first], strict=True)
        # The last input of a gather may be the list of its rows.
        if len(blocks) < len(record.inputs) - (record.name == "gather"):
            raise NotRepeated("rows that are gathered from TCM")

        def load(_: Sequence[Any]) -> Any:
            content = b"".join([block.read() for block in blocks])
            return np.frombuffer(content, dtype).reshape(shape)

        return load

    def _copied(self, number: int, record: OpRecord) -> tuple[int, Evaluate]:
        (source,) = record.inputs
        operand, target = self._operand(number, source), BY_NAME[record.dtype]
        shape = record.shape
        assert isinstance(source, Operand)
        if source.dtype != record.dtype and record.engine == "pe_fetch_store":
            # The sums of a product are rounded on their way from the accumulator.
            return -1, lambda results: finish(operand.of(results), None, None, target)
        if isinstance(operand, WholeResult) and (source.shape, source.dtype) == (
            shape,
            record.dtype,
        ):
            return operand.number, _nothing

        def copy(results: Sequence[Any]) -> Any:
            elements = np.ascontiguousarray(operand.of(results))
            return bytes_of(elements).view(target.numpy).reshape(shape)

        return -1, copy

    def _product(self, number: int, record: OpRecord) -> Evaluate:
        a, b, *rest = [self._operand(number, each) for each in record.inputs]

        def product(results: Sequence[Any]) -> Any:
            sums = rest[0].of(results) if rest else None
            return accumulate(sums, a.of(results), b.of(results))

        return product

    def _computed(self, number: int, record: OpRecord) -> Evaluate:
        shape, dtype = record.shape, BY_NAME[record.dtype]
        operation = evaluator(record.name, dtype, axis=record.axis, shape=shape)
        inputs: list[LocalOperand | float | Array] = [
            self._operand(number, each) if isinstance(each, Operand) else _number(record, each)
            for each in record.inputs
        ]
        if any(not isinstance(each, Operand) for each in record.inputs):
            self._inputs[number] = inputs
        first = inputs[0]
        is_epilogue = isinstance(first, WholeResult) and first.number in self._sums
        if is_epilogue:
            self._sums.add(number)
        else:
            same_as = self._equal.computed(number, record, inputs)
            if same_as >= 0:
                self._same_as[number] = same_as

        def evaluate(results: Sequence[Any]) -> Any:
            operands = [each.of(results) if isinstance(each, tuple) else each for each in inputs]
            if is_epilogue:
                operands = [np.asarray(each).astype(dtype.numpy, copy=False) for each in operands]
            return operation(operands).reshape(shape)

        return evaluate


def _number(record: OpRecord, number: float) -> float | Array:
    """A number of an operation; of an elementwise one, an element of its type."""
    return element(number, BY_NAME[record.dtype]) if record.name in ELEMENTWISE else number


def _nothing(_: Sequence[Any]) -> Any:
    raise AssertionError("a copy evaluates nothing")
