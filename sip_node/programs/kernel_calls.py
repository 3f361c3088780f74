"""Records the calls of a kernel that use data or order it, in a run with records.

A call has a row with its begin and its end; the end of an operation in flight may be long after the
kernel went on. A wait for such an operation has a row of its own, of any length:

    kernel     | load_async | math add | wait |
    rows       |===== load_async =====|
                            |== add ===|
                                       |= wait for the load =|
"""

from collections.abc import Iterable, Sequence
from typing import Any

from runtime.core.requests import QueuePair
from runtime.core.run_tables import BlockAccess
from runtime.core.trace import Operand
from runtime.language.value import Value
from sip_node.chip.completion import AnyCompletion, Completion
from sip_node.chip.records.call_rows import IN_MEMORY, IN_TCM, CallRows
from sip_node.pdes.engine import Engine
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.program_steps import ProgramSteps

_READ, _WRITE, _MAKE = map(int, (BlockAccess.READ, BlockAccess.WRITE, BlockAccess.MAKE))


class KernelCalls:
    """Adds the calls of one kernel to `rows`.

    A queue has the name of its table, the PE that receives from it, and the direction there; one of
    a transfer, in which messages of many kernels pass each other, also the id of the message.
    """

    def __init__(
        self, rows: CallRows, issuer: CommandIssuer, steps: ProgramSteps, engine: Engine
    ) -> None:
        self._rows, self._issuer, self._engine = rows, issuer, engine
        self._steps, self._program = steps, steps.number

    def begin(
        self,
        operation: str,
        reads: Sequence[Operand] = (),
        values: Sequence[object] = (),
        line: str = "",
    ) -> "KernelCall":
        """A call begins that reads blocks of memory, and `values` in TCM."""
        rows = self._rows
        number = rows.new_call()
        if reads:
            rows.add_blocks(number, _READ, IN_MEMORY, reads)
        if values:
            operands = [each.operand for each in values if isinstance(each, Value)]
            rows.add_blocks(number, _READ, IN_TCM, operands)
        text = self._steps.line_of(line or self._issuer.line)
        return KernelCall(self, number, operation, text, self._engine.now_ps)

    def waited(self, operation: "KernelCall", begin_ps: int) -> None:
        """The kernel has waited since `begin_ps` for an operation that ends now, or has ended."""
        text = self._steps.line_of(self._issuer.line)
        self._rows.add(
            self._rows.new_call(),
            self._program,
            "wait",
            text,
            (begin_ps, self._engine.now_ps),
            awaits=operation.number,
        )

    def made(self, value: Value) -> None:
        """The kernel has made a value whose elements are undefined."""
        call = self.begin("empty")
        self._rows.add_blocks(call.number, _MAKE, IN_TCM, (value.operand,))
        call.ended()

    def write(self, number: int, place: int, blocks: Iterable[Operand]) -> None:
        """A call writes blocks, in TCM or in memory."""
        self._rows.add_blocks(number, _WRITE, place, blocks)

    def end(self, call: "KernelCall") -> None:
        """A call has ended."""
        self._rows.add(
            call.number,
            self._program,
            call.operation,
            call.line,
            (call.begin_ps, self._engine.now_ps),
            queue=call.queue,
        )


class KernelCall:
    """A call of a kernel that has begun: its number, what it calls, its line and its begin."""

    __slots__ = ("_calls", "begin_ps", "line", "number", "operation", "queue")

    def __init__(
        self, calls: KernelCalls, number: int, operation: str, line: int, begin_ps: int
    ) -> None:
        self._calls, self.number, self.operation = calls, number, operation
        self.line, self.begin_ps = line, begin_ps
        self.queue = ("", 0, 0)

    def writes(self, blocks: Iterable[Operand]) -> None:
        """The call writes blocks of memory."""
        self._calls.write(self.number, IN_MEMORY, blocks)

    def makes(self, *values: Value) -> None:
        """The call writes values in TCM."""
        self._calls.write(self.number, IN_TCM, [each.operand for each in values])

    def ended(self, done: AnyCompletion | None = None) -> None:
        """The call has ended; `done` is the result of an operation in flight."""
        if done is None or done.error is None:
            self._calls.end(self)

    def sends(self, table: str, pair: QueuePair, nbytes: int, call: str) -> None:
        """The call sends a message of `nbytes` through a queue of `table`."""
        name = _queue(table, pair.peer, pair.peer_direction, call)
        self.queue = name, *_slots(pair, nbytes)

    def receives(
        self, table: str, pair: QueuePair, pe: tuple[int, int, int], nbytes: int, call: str
    ) -> None:
        """The call receives a message of `nbytes` on a PE."""
        self.queue = _queue(table, pe, pair.direction, call), *_slots(pair, nbytes)


def _queue(table: str, pe: tuple[int, int, int], direction: str, call: str) -> str:
    sip, cube, number = pe
    name = f"{table}@{sip}.{cube}.{number}:{direction}"
    return f"{name}#{call}" if call else name


def _slots(pair: QueuePair, nbytes: int) -> tuple[int, int]:
    """The slots of a message, and those of the ring."""
    return -(-nbytes // pair.slot_size), pair.n_slots


def end_call(call: KernelCall | None, *values: Value) -> None:
    """A call has ended, which has written values."""
    if call is not None:
        call.makes(*values)
        call.ended()


def end_call_with(call: KernelCall | None, done: Completion[Any], *values: Value) -> None:
    """A call, which writes values, ends with its operation."""
    if call is not None:
        call.makes(*values)
        done.then(call.ended)
