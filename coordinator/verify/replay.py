"""Replays the merged op log of all SIPs in the order of time, on memories of its own.

An operation reads its inputs at its start and writes its result at its end; a write of the host
takes effect at its start, since its end is the acknowledgement, which arrives after the operations
that waited for the write have begun. Of all that happens at
the same time, writes precede reads, so that an operation sees the result of another that ends when
it starts; apart from that the order is `(sip, index in its log)`. An operation without duration
reads its inputs immediately before it writes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np

from coordinator.verify.elements import EPS, NUMPY, Array, check_block, result_of, size_of
from coordinator.verify.memory import ReplayMemory
from coordinator.verify.operations import copies, evaluate, may_differ
from runtime.core.errors import KernbenchError
from runtime.core.simtime import format_ps
from runtime.core.trace import Operand, OpRecord

HOST_WRITE, HOST_READ = ("host", "MemoryWriteMsg"), ("host", "MemoryReadMsg")
_RESULTS, _READS = 0, 1


class ReplayError(KernbenchError):
    """The op log cannot be executed. Fields: the operation, the reason."""

    def __init__(self, operation: str, problem: str) -> None:
        super().__init__(operation, problem)
        self.operation, self.problem = operation, problem

    def __str__(self) -> str:
        return f"{self.operation} cannot be replayed: {self.problem}"


class ErrorBound(NamedTuple):
    """The largest justified deviation of a simulated result from the replayed one.

    `of_element` is relative to each element: the rounding of the operation itself. `of_largest` is
    relative to the largest element of the buffer: the rounding errors of the operands. A difference
    of large numbers is small but keeps their errors (cancellation), so these cannot be relative to
    the element.
    """

    of_element: float = 0.0
    of_largest: float = 0.0


EXACT = ErrorBound()


@dataclass(slots=True)
class ReplayedOperation:
    """An operation on data; `index` counts in the op log of `sip`, `number` in that of all SIPs.

    `error_bound` is `EXACT` if the simulated result has the same bits as the replayed one.
    `elements` is the type of the elements; for untyped bytes (`u8`), the type of the copied source.
    """

    number: int
    sip: int
    index: int
    record: OpRecord
    written: memoryview | None = None
    result: bytes = b""
    elements: str = ""
    error_bound: ErrorBound = EXACT

    def __str__(self) -> str:
        record = self.record
        operands = ", ".join(_describe(each) for each in record.inputs)
        times = f"{format_ps(record.start_ps)} to {format_ps(record.end_ps)}"
        return (
            f"sip {self.sip} {record.track} {record.name!r} of {times}, record {self.index}, "
            f"({operands}) -> {_describe(result_of(record))}"
        )


@dataclass(frozen=True)
class Mismatch:
    """An operation whose simulated result differs; `replayed` describes the replayed result."""

    operation: ReplayedOperation
    replayed: str

    def __str__(self) -> str:
        checksum = self.operation.record.checksum
        return (
            f"{self.operation}: its result has the checksum {checksum:#010x}, "
            f"replayed it is {self.replayed}"
        )


class Replay:
    """Executes op logs, given by SIP. `written` holds, by SIP, the data of its host's writes.

    `mismatches` are operations with a wrong result although their operands were right. `roundings`
    are operations whose result has other bits that rounding may explain; whether it does, the
    comparison of the memories decides.
    """

    def __init__(
        self, logs: Mapping[int, Sequence[OpRecord]], written: Mapping[int, bytes | bytearray]
    ) -> None:
        self.memory = ReplayMemory()
        self.operations: list[ReplayedOperation] = []
        self.mismatches: list[Mismatch] = []
        self.roundings: list[Mismatch] = []
        for sip in sorted(logs):
            host = memoryview(written.get(sip, b""))
            for index, record in enumerate(logs[sip]):
                # Records without data, such as packets on a link, have nothing to replay.
                if not record.inputs and not record.dtype:
                    continue
                # The memory has records of what it does; that of the request is its time.
                if record.engine == "pe_dma" and record.name.startswith("atomic"):
                    continue
                operation = ReplayedOperation(
                    len(self.operations), sip, index, record, elements=record.dtype
                )
                self.operations.append(operation)
                if (record.engine, record.name) == HOST_WRITE:
                    operation.written, host = host[: record.nbytes], host[record.nbytes :]
            # Bytes without a record would be a write that the op log does not show.
            if host:
                raise ReplayError(
                    f"sip {sip}", f"its host wrote {len(host):,} bytes more than its records have"
                )

    def run(self) -> None:
        """Execute all operations; `ReplayError` for an impossible record."""
        for operation, moment in self._timeline():
            try:
                if moment == _READS or _reads_at_its_end(operation.record):
                    self._execute(operation)
                if moment == _RESULTS:
                    self._write_result(operation)
            except (ValueError, TypeError, KernbenchError) as error:
                raise ReplayError(str(operation), str(error)) from error

    def _timeline(self) -> Iterator[tuple[ReplayedOperation, int]]:
        moments: list[tuple[int, int, int]] = []
        for operation in self.operations:
            record = operation.record
            from_host = (record.engine, record.name) == HOST_WRITE
            result_ps = record.start_ps if from_host else record.end_ps
            moments.append((result_ps, _RESULTS, operation.number))
            if not _reads_at_its_end(record):
                moments.append((record.start_ps, _READS, operation.number))
        # The tuple order is the order of the replay: time, writes before reads, operation number.
        moments.sort()
        return ((self.operations[number], moment) for _, moment, number in moments)

    def _execute(self, operation: ReplayedOperation) -> None:
        record = operation.record
        _check(record)
        blocks = [each for each in record.inputs if isinstance(each, Operand)]
        if operation.written is not None:
            result: Array = np.frombuffer(operation.written, np.uint8)
            if len(result) != record.nbytes:
                raise ValueError(
                    f"it wrote {record.nbytes:,} bytes, the host has sent {len(result):,} of them"
                )
        else:
            result = evaluate(
                record,
                [
                    self._input(each) if isinstance(each, Operand) else each
                    for each in record.inputs
                ],
            )
        operation.result = result.tobytes()
        # The checksum is that of the simulation: a replay compares millions of results without
        # their bytes.
        if crc32(operation.result) != record.checksum:
            self._differs(operation, result, self._sources(blocks))

    def _differs(
        self, operation: ReplayedOperation, result: Array, sources: Sequence[ReplayedOperation]
    ) -> None:
        """Record a difference: the checksum of the simulation is that of other bits."""
        record, bounds = operation.record, [source.error_bound for source in sources]
        explained = any(bound != EXACT for bound in bounds) or may_differ(record, result)
        (self.roundings if explained else self.mismatches).append(
            Mismatch(operation, _summary(result))
        )
        # A copy inherits the bounds of its sources; any other operation adds its own rounding.
        if record.dtype == "u8" and sources:
            operation.elements = sources[0].elements
        if copies(record) and bounds:
            operation.error_bound = ErrorBound(
                max(bound.of_element for bound in bounds),
                max(bound.of_largest for bound in bounds),
            )
        else:
            operation.error_bound = ErrorBound(
                EPS.get(record.dtype, 0.0), max((sum(bound) for bound in bounds), default=0.0)
            )

    def _input(self, block: Operand) -> Array:
        return self.memory.bytes.read_block(block).view(NUMPY[block.dtype]).reshape(block.shape)

    def _sources(self, blocks: Sequence[Operand]) -> list[ReplayedOperation]:
        return [
            self.operations[writer] for block in blocks for writer in self.memory.writers_of(block)
        ]

    def _write_result(self, operation: ReplayedOperation) -> None:
        if (operation.record.engine, operation.record.name) != HOST_READ:
            data = np.frombuffer(operation.result, np.uint8)
            self.memory.write_block(result_of(operation.record), data, operation.number)
        # The memory has the bytes now; a log of millions of operations must not keep them twice.
        operation.result = b""


def _reads_at_its_end(record: OpRecord) -> bool:
    # An operation without inputs needs no read; one without duration reads and writes at once.
    return not record.inputs or record.start_ps >= record.end_ps


def _check(record: OpRecord) -> None:
    """`ValueError` where a record contradicts itself."""
    for block in (*record.inputs, result_of(record)):
        if isinstance(block, Operand):
            check_block(block)
    if size_of(result_of(record)) != record.nbytes:
        raise ValueError(f"{record.nbytes:,} bytes are not {record.dtype}{list(record.shape)}")
    if record.end_ps < record.start_ps:
        raise ValueError("it ends before it starts")


def _describe(block: Operand | float) -> str:
    if not isinstance(block, Operand):
        return f"{block:g}"
    strides = f" strides {list(block.strides)}" if block.strides else ""
    return f"{block.dtype}{list(block.shape)}{strides} at {block.address:#x}"


def _summary(result: Array) -> str:
    """First elements and mean."""
    first = ", ".join(f"{float(element):g}" for element in result.reshape(-1)[:4])
    more = ", ..." if result.size > 4 else ""
    with np.errstate(all="ignore"):
        mean = float(result.astype(np.float64).mean()) if result.size else 0.0
    return f"[{first}{more}], mean {mean:g}"
