"""The parts of a running kernel, and its loads and stores: copies of values, by DMA.

A block of virtual memory is one request, or one for each physical piece. A blocking transfer ends
with its last request. One in flight has ended its command when the requests are with the DMA
engine, which keeps them in its queue until a channel is idle:

    kernel     | command | command |           | command |      | wait ... |
    channel 1            |=== load ===|========= store =========|
    channel 2                      |==== load ====|

The elements of a store are those at its command: nothing writes over the value in the meantime.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from runtime.core.dtypes import DType
from runtime.core.trace import Operand
from runtime.language.caller import kernel_line
from runtime.language.memory_in_flight import MemoryUse, UsedBlock
from runtime.language.program_ids import ProgramIds
from runtime.language.rows import RowGather, RowList
from runtime.language.value import Shape, Value
from sip_node.chip.completion import Completion, all_of, completed
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.mapping.strided_block import nbytes_of
from sip_node.chip.pe.pe import Pe
from sip_node.chip.pe.queue_table import QueueTable, SlotTrace
from sip_node.chip.store_order import FreedSlots, OrderedStore
from sip_node.programs.kernel_calls import KernelCall, KernelCalls, end_call, end_call_with
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_memory import KernelMemory, Transfer, fill
from sip_node.programs.kernel_operation import Operation, Operations
from sip_node.programs.kernel_receive import Receives
from sip_node.programs.kernel_send import Sends
from sip_node.programs.kernel_wait import KernelQueues, KernelWait
from sip_node.programs.program import AnyProgram, Steps
from sip_node.programs.program_steps import ProgramSteps

_Request = TypeVar("_Request")
_Result = TypeVar("_Result")


_OF_MESSAGES = frozenset({"_kept_credits", "_queues", "_receives", "_sends"})


class KernelParts:
    """The parts of one kernel on one PE, made when it uses one of them, and those of messages when
    it sends or receives; `program` runs the kernel.

    Of many launches on all PEs of a SIP each kernel has little to do, and these objects are half of
    what it costs.
    """

    _ids: ProgramIds
    _faults: KernelFaults
    _memory: KernelMemory
    _issuer: CommandIssuer
    _table: QueueTable
    _queues: KernelQueues
    _sends: Sends
    _kept_credits: dict[int, FreedSlots]
    _receives: Receives
    _wait: KernelWait
    _operations: Operations
    _calls: KernelCalls | None

    def __init__(self, pe: Pe, launch: PeLaunch, program: AnyProgram) -> None:
        self._pe, self._launch, self.program = pe, launch, program
        self._has_parts = self._has_messages = False
        # Of a kernel that runs in a run with records.
        self._steps: ProgramSteps | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "_ids":
            return self._made_ids()
        if name not in KernelParts.__annotations__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name)
        if name in _OF_MESSAGES:
            self._make_messages()
        else:
            self._make_parts()
        return self.__dict__[name]

    def _made_ids(self) -> ProgramIds:
        pe, launch = self._pe.coordinates, self._launch
        grid = None if launch.programs is None else launch.programs.grid
        self._ids = ids = ProgramIds((pe.pe, pe.cube), (launch.pes, launch.cubes), grid)
        return ids

    def _make_parts(self) -> None:
        pe, launch, program, chip = self._pe, self._launch, self.program, self._pe.chip
        self._faults = KernelFaults(launch.name, pe.coordinates, launch.call)
        self._memory = KernelMemory(pe, launch, self._faults)
        self._issuer = CommandIssuer(chip.engine, chip.topology, program, self._steps)
        self._calls = None
        if self._steps is not None:
            self._steps.scratch_bytes = self._memory.used_bytes
            assert chip.log.recorder is not None, "a run with steps has records"
            self._calls = KernelCalls(
                chip.log.recorder.calls, self._issuer, self._steps, chip.engine
            )
        # Taken now: a table may be installed while the kernel runs.
        self._table = pe.ipcq.table(launch.queues)
        self._wait = KernelWait(pe, launch, program, self._table)
        self._operations = Operations(self._issuer, self._wait, self._memory, self._calls)
        self._has_parts = True

    def _make_messages(self) -> None:
        pe, launch, chip = self._pe, self._launch, self._pe.chip
        issuer, wait, faults, table = self._issuer, self._wait, self._faults, self._table
        sink = chip.log.transferred
        trace = None if sink is None else SlotTrace(chip.addresses, pe.context, launch.name, sink)
        if self._steps is not None:
            self._steps.pair_of = table.pair
        self._queues = KernelQueues(table, launch, faults, chip.engine)
        self._receives = wait.receives = Receives(
            engine=chip.engine,
            dma=pe.dma,
            queues=table,
            issue_ps=issuer.issue_ps,
            faults=faults,
            trace=trace,
            tcm=pe.tcm,
            log=chip.log,
            transfer=launch.transfer,
        )
        self._sends = Sends(issuer, wait, pe.dma, self._queues, faults, trace, log=chip.log)
        self._kept_credits = {}
        self._has_messages = True


class _Gather(NamedTuple):
    """The arguments of a request: rows in memory, their target, and their list."""

    rows: list[Operand]
    target: Operand
    list_bytes: int
    indices: Operand | None


class KernelTransfers(KernelParts):
    """The loads and stores of one kernel."""

    def load(self, block: UsedBlock, out: Value | None = None) -> Value:
        """DMA from memory to TCM."""
        return self._issuer.block(self.loading(block, out))

    def loading(self, block: UsedBlock, out: Value | None = None) -> Steps[Value]:
        """The steps of `load`."""
        value = yield from self._target(out, block.shape, block.pointer.dtype)
        self._check_memory("tl.load", reads=(block,))
        data = b""
        # An empty block needs no command, and takes no time.
        if value.nbytes:
            blocks = self._memory.transfers(value.operand, block.pointer, block.strides)
            call = self._begun_call("load", [far for _, far in blocks])
            if len(blocks) == 1:
                ((near, far),) = blocks
                data = yield from self._issuer.issuing_translated(
                    "load", self._pe.dma.read, far, near
                )
            else:
                data = b"".join(
                    (yield from self._issuer.issuing_translated("load", self._read, blocks))
                )
            end_call(call, value)
        fill(value, data)
        return value

    def load_async(self, block: UsedBlock, out: Value | None = None) -> Operation:
        """DMA from memory to TCM, beside the kernel."""
        return self._issuer.block(self.beginning_load(block, out))

    def beginning_load(self, block: UsedBlock, out: Value | None = None) -> Steps[Operation]:
        """The steps of `load_async`."""
        value = yield from self._target(out, block.shape, block.pointer.dtype)
        use = self._checked_use("tl.load_async", reads=(block,))
        done, call = completed(list[bytes]()), None
        if value.nbytes:
            blocks = self._memory.transfers(value.operand, block.pointer, block.strides)
            call = self._begun_call("load_async", [far for _, far in blocks])
            done = yield from self._issuer.issuing_translated(
                "load_async", self._begun, self._read, blocks
            )
            # With the last byte and not in `wait`: views of `value` have the elements from then on.
            done.then(lambda read: fill(value, b"".join(read.value)))
            end_call_with(call, done, value)
        return Operation(self._operations, done, value, over=_existing(out), memory=use, call=call)

    def gather(self, rows: RowGather, out: Value | None = None) -> Value:
        """DMA of the rows that a list names."""
        return self._issuer.block(self.gathering(rows, out))

    def gathering(self, rows: RowGather, out: Value | None = None) -> Steps[Value]:
        """The steps of `gather`."""
        value = yield from self._target(out, rows.whole, rows.pointer.dtype)
        used = yield from self._rows(rows)
        self._check_memory(rows.rows.operation, reads=used)
        data = b""
        if value.nbytes:
            request = self._gathered(rows.rows, used, value)
            call = self._begun_call("gather", request.rows, (rows.rows.value,))
            data = yield from self._issuer.issuing("gather", self._gather, request)
            end_call(call, value)
        fill(value, data)
        return value

    def gather_async(self, rows: RowGather, out: Value | None = None) -> Operation:
        """DMA of the rows that a list names, beside the kernel."""
        return self._issuer.block(self.beginning_gather(rows, out))

    def beginning_gather(self, rows: RowGather, out: Value | None = None) -> Steps[Operation]:
        """The steps of `gather_async`."""
        value = yield from self._target(out, rows.whole, rows.pointer.dtype)
        used = yield from self._rows(rows)
        use = self._checked_use(rows.rows.operation, reads=used)
        done, call = completed(b""), None
        if value.nbytes:
            # The addresses of rows are translated with their descriptors, and not by the command.
            request = self._gathered(rows.rows, used, value)
            call = self._begun_call("gather_async", request.rows, (rows.rows.value,))
            done = yield from self._issuer.issuing(
                "gather_async", self._begun, self._gather, request
            )
            done.then(lambda read: fill(value, read.value))
            end_call_with(call, done, value)
        return Operation(
            self._operations,
            done,
            value,
            reads=_existing(rows.rows.value),
            over=_existing(out),
            memory=use,
            call=call,
        )

    def store(self, block: UsedBlock, value: Value) -> None:
        """DMA from TCM to memory."""
        self._issuer.block(self.storing(block, value))

    def storing(self, block: UsedBlock, value: Value) -> Steps[None]:
        """The steps of `store`."""
        self._check_memory("tl.store", writes=(block,))
        writes, _ = yield from self._writes(block, value)
        if not writes:
            return
        call = self._begun_call("store", (), (value,))
        if len(writes) == 1:
            yield from self._issuer.issuing_translated("store", self._pe.dma.write, *writes[0])
        else:
            yield from self._issuer.issuing_translated("store", self._write, writes)
        if call is not None:
            call.writes([far for _, far, _ in writes])
            call.ended()

    def store_async(self, block: UsedBlock, value: Value) -> Operation:
        """DMA from TCM to memory, beside the kernel."""
        return self._issuer.block(self.beginning_store(block, value))

    def beginning_store(self, block: UsedBlock, value: Value) -> Steps[Operation]:
        """The steps of `store_async`."""
        use = self._checked_use("tl.store_async", writes=(block,))
        writes, store = yield from self._writes(block, value, in_flight=True)
        done, call = completed(list[bytes]()), None
        if writes:
            call = self._begun_call("store_async", (), (value,))
            if call is not None:
                call.writes([far for _, far, _ in writes])
            done = yield from self._issuer.issuing_translated(
                "store_async", self._begun, self._write, writes
            )
            end_call_with(call, done)
        return Operation(
            self._operations, done, None, reads=(value,), memory=use, call=call, store=store
        )

    def _begun_call(
        self, operation: str, reads: Sequence[Operand], values: Sequence[object] = ()
    ) -> KernelCall | None:
        """A call that reads blocks of memory and values, in a run with records."""
        calls = self._calls
        return None if calls is None else calls.begin(operation, reads, values)

    def _target(self, out: Value | None, shape: Shape, dtype: DType) -> Steps[Value]:
        """The value that a result is written to: new, or `out` when no operation uses it."""
        if out is not None:
            yield from self._operations.awaiting_users(out)
        return self._memory.new(shape, dtype) if out is None else out

    def _checked_use(
        self,
        name: str,
        reads: Sequence[UsedBlock] = (),
        writes: Sequence[UsedBlock] = (),
        line: str = "",
    ) -> MemoryUse:
        """The memory that an operation uses; `KernelError` if another one in flight forbids it."""
        self._check_memory(name, reads, writes)
        return MemoryUse(name, line or self._faults.line or kernel_line(), reads, writes)

    def _check_memory(
        self, name: str, reads: Sequence[UsedBlock] = (), writes: Sequence[UsedBlock] = ()
    ) -> None:
        problem = self._operations.memory.problem(name, reads, writes)
        if problem is not None:
            raise self._faults.error(problem)

    def _writes(
        self, block: UsedBlock, value: Value, *, in_flight: bool = False
    ) -> Steps[tuple[list[tuple[Operand, Operand, bytes]], OrderedStore | None]]:
        """The requests of a store, and its place in the order; an empty value has none."""
        yield from self._operations.awaiting_writers((value,))
        if not value.nbytes:
            return [], None
        transfers = self._memory.transfers(value.operand, block.pointer, block.strides)
        blocks = (far for _, far in transfers)
        store = self._memory.check_store(block.pointer, blocks, in_flight=in_flight)
        data, start = value.tobytes(), 0
        writes: list[tuple[Operand, Operand, bytes]] = []
        for near, far in transfers:
            end = start + nbytes_of(far)
            writes.append((near, far, data[start:end]))
            start = end
        return writes, store

    def _rows(self, rows: RowGather) -> Steps[list[UsedBlock]]:
        """The blocks of the rows, once their list is complete."""
        yield from self._operations.awaiting_writers((rows.rows.value,))
        return rows.blocks()

    def _gathered(self, rows: RowList, used: Sequence[UsedBlock], value: Value) -> _Gather:
        listed = None if rows.value is None else rows.value.operand
        return _Gather(self._memory.rows(rows, used), value.operand, rows.nbytes, listed)

    def _gather(self, request: _Gather) -> Completion[bytes]:
        return self._pe.dma.gather(*request)

    def _begun(
        self, begin: Callable[[_Request], Completion[_Result]], request: _Request
    ) -> Completion[Completion[_Result]]:
        """The kernel goes on when an operation has begun, with its completion."""
        return completed(begin(request))

    def _read(self, blocks: list[Transfer]) -> Completion[list[bytes]]:
        return all_of([self._pe.dma.read(far, near) for near, far in blocks])

    def _write(self, writes: list[tuple[Operand, Operand, bytes]]) -> Completion[list[bytes]]:
        return all_of([self._pe.dma.write(*write) for write in writes])


def _existing(value: Value | None) -> tuple[Value, ...]:
    return () if value is None else (value,)
