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
from runtime.core.run_tables import NONE, BlockAccess
from runtime.core.trace import Operand
from runtime.language.value import Value
from sip_node.chip.completion import AnyCompletion, Completion
from sip_node.chip.records.call_rows import CallRows
from sip_node.chip.records.kept_calls import IN_MEMORY, IN_TCM
from sip_node.pdes.engine import Engine
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.program_steps import ProgramSteps

# Constants; in C variables of the module that are no objects.
_READ, _WRITE, _MAKE = map(int, (BlockAccess.READ, BlockAccess.WRITE, BlockAccess.MAKE))
_IN_TCM, _IN_MEMORY = IN_TCM, IN_MEMORY


class KernelCalls:
    """Adds the calls of one kernel to `rows`.

    A queue has the name of its table, the PE that receives from it, and the direction there; one of
    a transfer, in which messages of many kernels pass each other, also the id of the message.
    """

    def __init__(
        self, rows: CallRows, issuer: CommandIssuer, steps: ProgramSteps, engine: Engine
    ) -> None:
        self.rows, self.program, self.engine = rows, steps.number, engine
        self._issuer, self._steps = issuer, steps

    def begin(
        self,
        operation: str,
        reads: Sequence[Operand] = (),
        values: Sequence[object] = (),
        line: str = "",
    ) -> "KernelCall":
        """A call begins that reads blocks of memory, and `values` in TCM."""
        rows = self.rows
        number = rows.new_call()
        for block in reads:
            rows.add_block(number, _READ, _IN_MEMORY, block)
        for value in values:
            if isinstance(value, Value):
                rows.add_block(number, _READ, _IN_TCM, value.operand)
        text = self._steps.line_of(line or self._issuer.line)
        return KernelCall(self, number, operation, text, self.engine.now_ps)

    def waited(self, operation: "KernelCall", begin_ps: int) -> None:
        """The kernel has waited since `begin_ps` for an operation that ends now, or has ended."""
        line, rows = self._steps.line_of(self._issuer.line), self.rows
        call, end_ps, awaits = rows.new_call(), self.engine.now_ps, operation.number
        of, to = rows.text("wait"), rows.text("")
        rows.add(call, self.program, of, line, begin_ps, end_ps, awaits, NONE, to, 0, 0)

    def made(self, value: Value) -> None:
        """The kernel has made a value whose elements are undefined."""
        call = self.begin("empty")
        self.rows.add_block(call.number, _MAKE, _IN_TCM, value.operand)
        call.ended()


class KernelCall:
    """A call of a kernel that has begun: its number, what it calls, its line and its begin."""

    def __init__(
        self, calls: KernelCalls, number: int, operation: str, line: int, begin_ps: int
    ) -> None:
        self._calls, self.number, self.operation = calls, number, operation
        self._line, self._begin_ps = line, begin_ps
        self._queue, self._slots, self._depth = "", 0, 0

    def writes(self, blocks: Iterable[Operand]) -> None:
        """The call writes blocks of memory."""
        for block in blocks:
            self._calls.rows.add_block(self.number, _WRITE, _IN_MEMORY, block)

    def makes(self, values: Iterable[Value]) -> None:
        """The call writes values in TCM."""
        for value in values:
            self._calls.rows.add_block(self.number, _WRITE, _IN_TCM, value.operand)

    def ended(self, done: AnyCompletion | None = None) -> None:
        """The call has ended; `done` is the result of an operation in flight."""
        if done is None or done.error is None:
            calls, rows = self._calls, self._calls.rows
            rows.add(
                self.number,
                calls.program,
                rows.text(self.operation),
                self._line,
                self._begin_ps,
                calls.engine.now_ps,
                NONE,
                NONE,
                rows.text(self._queue),
                self._slots,
                self._depth,
            )

    def served(self, number: int) -> None:
        """Memory serves the call as the operation `number` of its launch."""
        self._slots = number

    def sends(self, table: str, pair: QueuePair, nbytes: int, call: str) -> None:
        """The call sends a message of `nbytes` through a queue of `table`."""
        self._uses(_queue(table, pair.peer, pair.peer_direction, call), pair, nbytes)

    def receives(
        self, table: str, pair: QueuePair, pe: tuple[int, int, int], nbytes: int, call: str
    ) -> None:
        """The call receives a message of `nbytes` on a PE."""
        self._uses(_queue(table, pe, pair.direction, call), pair, nbytes)

    def _uses(self, queue: str, pair: QueuePair, nbytes: int) -> None:
        """The message has slots in a queue, and the ring has its own."""
        self._queue, self._depth = queue, pair.n_slots
        self._slots = -(-nbytes // pair.slot_size)


def _queue(table: str, pe: tuple[int, int, int], direction: str, call: str) -> str:
    sip, cube, number = pe
    name = f"{table}@{sip}.{cube}.{number}:{direction}"
    return f"{name}#{call}" if call else name


def end_call(call: KernelCall | None, *values: Value) -> None:
    """A call has ended, which has written values."""
    if call is not None:
        call.makes(values)
        call.ended()


def end_call_with(call: KernelCall | None, done: Completion[Any], *values: Value) -> None:
    """A call, which writes values, ends with its operation."""
    if call is not None:
        call.makes(values)
        done.then(call.ended)
