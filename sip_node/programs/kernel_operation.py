"""Operations that a kernel has started and that run beside it: transfers, products and receives.

Values in TCM are interlocked: a command waits for the operations in flight that write what it reads
or use what it writes, and the end of a scratch scope for those that use its memory. Most results
are new values, which no command can name before the kernel has waited for them. So a read waits
only for the few operations that write over a value which exists (`out=`, `dst_addr=`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from runtime.core.run_tables import Cause
from runtime.language.caller import UNKNOWN_LINE
from runtime.language.memory_in_flight import MemoryInFlight, MemoryUse
from runtime.language.refusals import PENDING, PENDING_ADVICE, refuse_operators
from runtime.language.value import Value
from sip_node.chip.completion import Completion
from sip_node.chip.store_order import KernelOrder, KernelPoint, OrderedStore
from sip_node.programs.kernel_calls import KernelCall, KernelCalls
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_send import SentMessage
from sip_node.programs.kernel_wait import KernelWait, PeerWait
from sip_node.programs.program import Steps


class _Extents:
    """Extents of values: the first byte of all of them, that behind the last one, and each.

    Each command compares its values with all operations in flight, and most of these lie apart.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self.count = len(values)
        self._each = [value.extent for value in values]
        self._first = self._behind = 0
        if self.count == 1:
            self._first, self._behind = self._each[0]
        elif self.count:
            self._first = min([first for first, _ in self._each])
            self._behind = max([behind for _, behind in self._each])

    def overlaps(self, start: int, end: int) -> bool:
        """Whether one of them has a byte from `start` on before `end`."""
        if self._first >= end or start >= self._behind:
            return False
        if self.count > 1:
            # No generator, which is slower than the comparisons in C.
            for first, behind in self._each:  # noqa: SIM110 - see above
                if first < end and start < behind:
                    return True
            return False
        return True


class InFlight:
    """An operation of `operations` in flight; its wait returns `result`, in TCM, or None.

    It reads the values `reads` and writes to `result`, of which those in `over` existed before; it
    uses the blocks of `memory`.
    `written` are the extents of what it writes over, `used` those, and those of what it reads.
    `peer` describes the wait for the peer that it depends on. An operation that depends on no peer
    has `earliest_end_ps` instead, which returns a lower bound for its end. `call` has started it,
    in a run with records. `store` is what it stores, in a launch on several PEs.
    """

    def __init__(  # noqa: PLR0913 - what a command waits for, and what it is recorded as
        self,
        operations: "OpenOperations",
        done: Completion[Any],
        result: Value | tuple[Value, ...] | None,
        *,
        reads: Sequence[Value] = (),
        over: Sequence[Value] = (),
        memory: MemoryUse | None = None,
        peer: PeerWait | None = None,
        earliest_end_ps: Callable[[], int] | None = None,
        call: KernelCall | None = None,
        store: OrderedStore | None = None,
    ) -> None:
        self._operations, self.call, self.store = operations, call, store
        self.joins: tuple[KernelPoint | None, ...] = ()
        """Points of other kernels behind which the kernel is when it has waited."""
        self.done, self.result = done, result
        self.peer, self.earliest_end_ps = peer, earliest_end_ps
        self.written = _Extents(over)
        self.used = self.written
        if reads:
            self.used = _Extents((*over, *reads) if over else reads)
        self._reads, self._made = reads, result
        self.message: SentMessage | None = None
        """The message of a send."""
        self._operations.started(self, memory)

    def wait(self) -> Any:
        """Block the kernel until the operation is complete; the result."""
        self._operations.await_end(self)
        return self.result

    @property
    def value(self) -> Value:
        """The value that it writes, of an operation with one."""
        assert isinstance(self.result, Value), "the operation has one result"
        return self.result

    @property
    def values(self) -> tuple[Value, ...]:
        """All values that it writes."""
        result = self.result
        return (result,) if isinstance(result, Value) else result or ()

    def uses_from(self, address: int) -> bool:
        """Whether it uses TCM behind `address`."""
        made = self._made
        kept = *self._reads, *((made,) if isinstance(made, Value) else made or ())
        return any(value.extent[1] > address for value in kept)

    @property
    def operation(self) -> str:
        """The call by which the program waits for it."""
        return "wait"

    @property
    def cause(self) -> Cause:
        """The cause of a wait for it."""
        if self.message is not None:
            return self.message.cause
        if self.peer is not None:
            return Cause.SLOT
        # Only the engines state a bound for the end of their work.
        return Cause.OPERAND if self.earliest_end_ps is None else Cause.ENGINE

    @property
    def direction(self) -> str | None:
        """The direction of the peer that it depends on, if it depends on one."""
        return None if self.peer is None else self.peer.direction

    def completion(self) -> Completion[Any]:
        """`done`, as a call that a program waits for."""
        return self.done


class Operation(InFlight):
    """An operation in flight, as a kernel has it: a class whose operators are refused."""

    __slots__ = ()


refuse_operators(Operation, PENDING, PENDING_ADVICE)


class OpenOperations:
    """The operations of one kernel for which it has not waited, in the order of their start."""

    def __init__(
        self, issuer: CommandIssuer, order: KernelOrder, calls: KernelCalls | None = None
    ) -> None:
        self._issuer, self._order, self._calls = issuer, order, calls
        self._engine = issuer.engine
        # Dictionaries as sets in the order of the starts.
        self._open: dict[InFlight, None] = {}
        # Of the open ones, those that write over a value which exists.
        self._over: dict[InFlight, None] = {}
        self.memory = MemoryInFlight()

    def started(self, operation: InFlight, memory: MemoryUse | None) -> None:
        """Note an operation that has started, with the blocks of memory that it uses."""
        self._open[operation] = None
        if operation.written.count:
            self._over[operation] = None
        if memory is not None:
            self.memory.begin(operation, memory)

    def awaiting_writers(self, values: Iterable[object]) -> Steps[None]:
        """Wait until no operation writes over what a command is about to read, if a value."""
        if self._over:
            yield from self._awaiting_each(self._writers_of(values))

    def _writers_of(self, values: Iterable[object]) -> list[InFlight]:
        read = [value.extent for value in values if isinstance(value, Value)]
        writers: list[InFlight] = []
        for each in self._over:
            for start, end in read:
                if each.written.overlaps(start, end):
                    writers.append(each)
        return writers

    def awaiting_users(self, value: Value) -> Steps[None]:
        """Wait until no operation uses a value that a command is about to write over."""
        return self._awaiting_each(self._users_of(value))

    def _users_of(self, value: Value) -> list[InFlight]:
        users: list[InFlight] = []
        start, end = value.extent
        for each in self._open:
            if each.used.overlaps(start, end):
                users.append(each)  # noqa: PERF401 - `each` has a type in C
        return [each for each in users if not self._closes(each)]

    def awaiting_users_from(self, address: int) -> Steps[None]:
        """Wait until no operation uses TCM behind `address`, which a scope releases."""
        return self._awaiting_each([each for each in self._open if each.uses_from(address)])

    def _awaiting_each(self, operations: Iterable[InFlight]) -> Steps[None]:
        for operation in operations:
            # An operation that is complete blocks nothing, so it must not show as a wait.
            if not self._closes(operation):
                yield from self._awaiting(operation)

    def await_end(self, operation: InFlight) -> None:
        """Block as `awaiting_end` waits."""
        if not self.ends(operation):
            self._issuer.block(self._awaiting(operation))

    def awaiting_end(self, operation: InFlight) -> Steps[None]:
        """Wait until an operation is complete; the kernel has waited for it."""
        if not self.ends(operation):
            yield from self._awaiting(operation)

    def ends(self, operation: InFlight) -> bool:
        """The kernel waits for an operation: whether it is complete, and its wait has ended."""
        self.memory.end(operation)
        return self._closes(operation)

    def _closes(self, operation: InFlight) -> bool:
        """Close an operation; whether it is complete. Raises its error."""
        self._open.pop(operation, None)
        self._over.pop(operation, None)
        done = operation.done
        if done.done and done.error is not None:
            raise done.error
        if done.done:
            self._waited(operation, self._engine.now_ps)
        return done.done

    def _waited(self, operation: InFlight, begin_ps: int) -> None:
        """A wait ends now: the kernel goes on behind the operation."""
        if operation.store is not None:
            self._order.ended(operation.store)
        if operation.joins:
            self._order.join(operation.joins)
        if self._calls is not None and operation.call is not None:
            self._calls.waited(operation.call, begin_ps)

    def _awaiting(self, operation: InFlight) -> Steps[None]:
        """Wait for an operation that is not complete."""
        raise NotImplementedError(type(self).__name__)

    def awaiting_all(self) -> Steps[None]:
        """Wait until no operation is open: a kernel ends when all that it started has ended."""
        line = self._issuer.line
        while self._open:
            operation = next(iter(self._open))
            # The function has returned: the line is that of the call which started the operation.
            self._issuer.line = self._line_of(operation) or UNKNOWN_LINE
            yield from self.awaiting_end(operation)
        self._issuer.line = line

    def _line_of(self, operation: InFlight) -> str:
        """The line of the call that started an operation; empty for one without blocks of memory
        and without a peer.
        """
        line = self.memory.line_of(operation)
        return operation.peer.line if not line and operation.peer is not None else line


class Operations(OpenOperations):
    """The operations of a kernel on a PE, whose waits take simulated time."""

    def __init__(
        self,
        issuer: CommandIssuer,
        wait: KernelWait,
        order: KernelOrder,
        calls: KernelCalls | None = None,
    ) -> None:
        super().__init__(issuer, order, calls)
        self._wait = wait

    def _awaiting(self, operation: InFlight) -> Steps[None]:
        self._wait.begin(operation.peer)
        if operation.earliest_end_ps is not None:
            self._wait.until(operation.earliest_end_ps)
        begin_ps = self._engine.now_ps
        yield from self._issuer.waiting(operation, operation.completion)
        self._wait.end()
        self._waited(operation, begin_ps)
