"""A PE of the mock runtime that records the calls of its kernel, as a PE of the chip does."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, Unpack

from kernbench.explain.mock.recorded_operations import (
    MockOperation,
    MockOperations,
    UntimedIssuer,
)
from runtime.core.coordinates import PeCoordinates
from runtime.core.dtypes import DType
from runtime.core.program_grid import GridPoint
from runtime.core.trace import Operand
from runtime.language.atomics import AtomicCall
from runtime.language.chain import ChainCall
from runtime.language.chains.call_texts import chain_text, math_text
from runtime.language.context import BarrierScope, PendingValue
from runtime.language.gemm import Gemm
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.mock import MockPe
from runtime.language.mock.pe import PeOptions
from runtime.language.mock.pending import Complete, CompleteValue, ReceiveToMemory
from runtime.language.mock.queues import MockReceive
from runtime.language.rows import RowGather
from runtime.language.running import NO_OPTIONS, MathOptions
from runtime.language.value import Pointer, Ref, Shape, Value, row_major
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.records.run_recorder import RunRecorder
from sip_node.pdes.engine import Engine
from sip_node.programs.kernel_calls import KernelCall, KernelCalls, end_call
from sip_node.programs.program_steps import ProgramOrigin, ProgramSteps

_TABLE = "mock"
"""The table of the queues, which have one for all kernels of a launch."""


class RecordedSip(Protocol):
    """A SIP without time whose calls are recorded."""

    @property
    def engine(self) -> Engine:
        """The clock, which stands still."""
        ...

    @property
    def recorder(self) -> RunRecorder:
        """The tables."""
        ...

    @property
    def log(self) -> OpLog:
        """The op log, which stays empty."""
        ...


class RecordedPe(MockPe):
    """Runs the kernel of a launch, the command with number `command`; each call that uses data or
    orders it has a row.
    """

    def __init__(
        self,
        sip: RecordedSip,
        command: int,
        coordinates: PeCoordinates,
        programs: tuple[int, int],
        **options: Unpack[PeOptions],
    ) -> None:
        super().__init__(coordinates, programs, **options)
        _, cube, pe = coordinates
        origin = ProgramOrigin(self.kernel, "kernels", cube, pe, command)
        self._steps = ProgramSteps(sip.engine, sip.log, origin)
        issuer = UntimedIssuer(sip.engine)
        self._calls = KernelCalls(sip.recorder.calls, issuer, self._steps, sip.engine)
        self._operations, self._issuer = MockOperations(issuer, self._calls), issuer

    def programs(self) -> Iterator[GridPoint | None]:
        """Each program, to the end of all that it has started."""
        with self._steps:
            for program in super().programs():
                if program is not None:
                    self._calls.begin(f"program {program}").ended()
                yield program
                self._operations.await_all()

    def locate(self, line: str) -> None:
        """Take `line` as the source line of all commands from now on."""
        super().locate(line)
        self._issuer.line = line

    def load(self, block: UsedBlock, out: Value | None = None) -> Value:
        """See `KernelContext`."""
        self._operations.await_users(out)
        call = self._begun("load", [block])
        value = super().load(block, out)
        _ended(call, value)
        return value

    def load_async(self, block: UsedBlock, out: Value | None = None) -> MockOperation:
        """See `KernelContext`."""
        self._operations.await_users(out)
        call = self._begun("load_async", [block])
        return self._started(call, super().load_async(block, out), (), out)

    def gather(self, rows: RowGather, out: Value | None = None) -> Value:
        """See `KernelContext`."""
        call = self._begun_gather("gather", rows, out)
        value = super().gather(rows, out)
        _ended(call, value)
        return value

    def gather_async(self, rows: RowGather, out: Value | None = None) -> MockOperation:
        """See `KernelContext`."""
        call = self._begun_gather("gather_async", rows, out)
        return self._started(call, super().gather_async(rows, out), _existing(rows.rows.value), out)

    def store(self, block: UsedBlock, value: Value) -> None:
        """See `KernelContext`."""
        call = self._begun_store("store", value)
        super().store(block, value)
        self._record_store(call, block)

    def store_async(self, block: UsedBlock, value: Value) -> MockOperation:
        """See `KernelContext`."""
        call = self._begun_store("store_async", value)
        pending = super().store_async(block, value)
        self._record_store(call, block)
        return MockOperation(self._operations, pending, None, reads=(value,), call=call)

    def atomic(self, call: AtomicCall) -> MockOperation:
        """See `KernelContext`."""
        self._operations.await_writers(call.operands)
        self._operations.await_users(call.out)
        name = f"atomic {call.operation} {call.sem}"
        recorded = self._begun(name, (call.block,), call.operands)
        # Calls are carried out in the order of their begins.
        recorded.served(recorded.number)
        pending = super().atomic(call)
        assert isinstance(pending, Complete), "the mock runtime combines at once"
        if call.value.nbytes:
            recorded.writes((_operand(call.block),))
            end_call(recorded, *_existing(pending.value))
        return MockOperation(
            self._operations,
            pending,
            pending.value,
            reads=call.operands,
            over=_existing(call.out),
            call=recorded,
        )

    def math(
        self,
        name: str,
        operands: Sequence[Value | float],
        options: MathOptions = NO_OPTIONS,
        out: Value | None = None,
    ) -> Value:
        """See `KernelContext`."""
        self._operations.await_writers(operands)
        self._operations.await_users(out)
        call = self._calls.begin(math_text(name, operands), (), operands)
        value = super().math(name, operands, options, out)
        _ended(call, value)
        return value

    def settle(self, value: Value) -> None:
        """See `KernelContext`."""
        self._operations.await_writers((value,))

    def run_chain(self, call: ChainCall) -> MockOperation:
        """See `KernelContext`."""
        chain = call.chain
        for out in call.outs:
            self._operations.await_users(out)
        recorded = None
        if chain.plan.width:
            recorded = self._calls.begin(chain_text(chain), (), chain.sources)
        pending = super().run_chain(call)
        returned: Value | tuple[Value, ...] = pending.wait()
        end_call(recorded, *((returned,) if isinstance(returned, Value) else returned))
        return MockOperation(
            self._operations,
            pending,
            returned,
            reads=tuple(chain.sources),
            over=tuple(out for out in call.outs if out is not None),
            call=recorded,
        )

    def gemm(self, gemm: Gemm) -> MockOperation:
        """See `KernelContext`."""
        reads = [each for each in (gemm.a, gemm.b, gemm.acc, gemm.bias) if isinstance(each, Value)]
        self._operations.await_writers(reads)
        self._operations.await_users(gemm.over)
        streamed = [UsedBlock.of(each) for each in (gemm.a, gemm.b) if isinstance(each, Ref)]
        call = self._begun("composite", streamed, reads)
        pending = super().gemm(gemm)
        assert isinstance(pending, Complete), "the mock runtime computes at once"
        if gemm.out is not None:
            call.writes((_operand(UsedBlock.of(gemm.out)),))
        end_call(call, *_existing(pending.value))
        return MockOperation(
            self._operations,
            pending,
            pending.value,
            reads=tuple(reads),
            over=_existing(gemm.over),
            call=call,
        )

    def send(self, direction: str, value: Value) -> None:
        """See `KernelContext`."""
        self._operations.await_writers((value,))
        call = self._begun("send", (), (value,))
        super().send(direction, value)
        self._sent(call, direction, value)

    def send_async(self, direction: str, value: Value) -> MockOperation:
        """See `KernelContext`."""
        self._operations.await_writers((value,))
        call = self._begun("send_async", (), (value,))
        pending = super().send_async(direction, value)
        self._sent(call, direction, value)
        return MockOperation(
            self._operations, pending, None, reads=(value,), call=call, is_message=True
        )

    def recv(
        self,
        direction: str | None,
        shape: Shape,
        dtype: DType,
        target: Value | Pointer | None = None,
        *,
        in_place: bool = False,
    ) -> MockOperation:
        """See `KernelContext`."""
        over = None if isinstance(target, Pointer) else target
        self._operations.await_users(over)
        call = self._begun("recv", ())
        pending = super().recv(direction, shape, dtype, target, in_place=in_place)
        receive = pending.receive if isinstance(pending, ReceiveToMemory) else pending
        assert isinstance(receive, MockReceive), "a receive is posted"
        value = receive.target
        operation = MockOperation(
            self._operations, pending, value, over=_existing(over), call=call, is_message=True
        )
        if isinstance(target, Pointer):
            call.writes((_operand(UsedBlock(target, shape, row_major(shape))),))
        elif value is not None:
            call.makes((value,))
        if in_place:
            call.operation = "recv in place"
        receive.then(lambda: self._received(call, receive, operation))
        return operation

    def barrier(self, scope: BarrierScope) -> None:
        """See `KernelContext`."""
        call = self._begun("barrier of a cube" if scope == "cube" else "barrier", ())
        super().barrier(scope)
        call.ended()

    def release(self, value: Value) -> None:
        """See `KernelContext`."""
        self._operations.await_users(value)
        call = self._begun("release", (), (value,))
        super().release(value)
        _ended(call, value, makes=False)

    def empty(self, shape: Shape, dtype: DType) -> Value:
        """See `KernelContext`."""
        value = super().empty(shape, dtype)
        if value.nbytes:
            self._calls.made(value)
        return value

    @contextmanager
    def scratch(self) -> Generator[None]:
        """See `KernelContext`."""
        begin = self._scratch.used_bytes
        with super().scratch():
            yield
            self._operations.await_users_from(begin)

    def _begun(
        self, operation: str, blocks: Sequence[UsedBlock], values: Sequence[object] = ()
    ) -> KernelCall:
        """A call that reads blocks of memory, and values."""
        return self._calls.begin(operation, [_operand(each) for each in blocks], values)

    def _begun_gather(self, operation: str, rows: RowGather, out: Value | None) -> KernelCall:
        self._operations.await_users(out)
        self._operations.await_writers((rows.rows.value,))
        return self._begun(operation, rows.blocks(), (rows.rows.value,))

    def _started(
        self,
        call: KernelCall,
        pending: PendingValue,
        reads: tuple[Value, ...],
        out: Value | None,
    ) -> MockOperation:
        """A load or gather beside the kernel, which has copied at once."""
        assert isinstance(pending, CompleteValue), "the mock runtime copies at once"
        value = pending.loaded
        _ended(call, value)
        over = _existing(out)
        return MockOperation(self._operations, pending, value, reads=reads, over=over, call=call)

    def _begun_store(self, operation: str, value: Value) -> KernelCall:
        self._operations.await_writers((value,))
        return self._begun(operation, (), (value,))

    def _record_store(self, call: KernelCall, block: UsedBlock) -> None:
        """A call has stored a block; without elements, the chip has none."""
        if 0 not in block.shape:
            call.writes((_operand(block),))
            call.ended()

    def _sent(self, call: KernelCall, direction: str, value: Value) -> None:
        """A message has left, or leaves behind those that were sent in this direction before."""
        if value.nbytes:
            call.sends(_TABLE, self.queues.pair(direction), value.nbytes, "")
            call.ended()

    def _received(self, call: KernelCall, receive: MockReceive, operation: MockOperation) -> None:
        """A message has come."""
        if receive.nbytes and receive.direction is not None:
            pair = self.queues.pair(receive.direction)
            call.receives(_TABLE, pair, self.coordinates, receive.nbytes, "")
            call.ended()
        operation.complete()


def _ended(call: KernelCall, value: Value, *, makes: bool = True) -> None:
    """A call that writes a value has ended; without elements, the chip has none."""
    if value.nbytes:
        end_call(call, *((value,) if makes else ()))


def _existing(value: Value | None) -> tuple[Value, ...]:
    return () if value is None else (value,)


def _operand(block: UsedBlock) -> Operand:
    """A block as the records have it, which leave out strides without gaps."""
    pointer, shape, strides = block
    gaps = () if strides == row_major(shape) else strides
    return Operand(pointer.address, shape, pointer.dtype.name, gaps)
