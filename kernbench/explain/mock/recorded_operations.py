"""Operations in flight of a kernel under the mock runtime, with the interlocks of the chip.

The mock runtime carries out an operation at its start, but for messages. Which commands wait for
it, and so the rows of waits, follow from the rules of a kernel on the chip.
"""

from collections.abc import Iterable
from typing import Any

from runtime.language.caller import kernel_line
from runtime.language.context import PendingResult
from runtime.language.mock.pending import ChainResult
from runtime.language.value import Value
from sip_node.chip.completion import Completion, completed
from sip_node.chip.store_order import KernelOrder, StoreOrders
from sip_node.pdes.engine import Engine
from sip_node.programs.kernel_calls import KernelCall, KernelCalls
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_operation import InFlight, OpenOperations, Operation
from sip_node.programs.program import Steps


class UntimedIssuer(CommandIssuer):
    """Carries out waits at once: a kernel of the mock runtime blocks by itself."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.line = engine, ""

    def block(self, steps: Steps[Any]) -> Any:
        """Carry out all steps."""
        for _ in steps:
            pass


class MockOperation(Operation):
    """An operation of the mock runtime, `pending` there. It is complete unless it is a message."""

    def __init__(
        self,
        operations: "MockOperations",
        pending: PendingResult,
        result: Value | tuple[Value, ...] | None,
        *,
        reads: tuple[Value, ...] = (),
        over: tuple[Value, ...] = (),
        call: KernelCall | None = None,
        is_message: bool = False,
    ) -> None:
        done: Completion[Any] = Completion() if is_message else completed(None)
        super().__init__(operations, done, result, reads=reads, over=over, call=call)
        self._pending = pending
        # On the chip, a chain has neither blocks of memory nor a peer.
        self.line = "" if isinstance(pending, ChainResult) else operations.line

    def complete(self) -> None:
        """The message is complete, now or earlier."""
        if not self.done.done:
            self.done.complete(None)

    def settle(self) -> Any:
        """Let other PEs run until it is complete; its result."""
        result = self._pending.wait()
        self.complete()
        return result

    def wait(self) -> Any:
        """The same, and the kernel has waited for it."""
        result = self.settle()
        super().wait()
        return result


class MockOperations(OpenOperations):
    """The operations of a kernel; each wait for one has a row among `calls`."""

    def __init__(self, issuer: UntimedIssuer, calls: KernelCalls) -> None:
        super().__init__(issuer, KernelOrder(StoreOrders()), calls)
        self._kernel = issuer

    @property
    def line(self) -> str:
        """The line of the kernel that runs."""
        return self._kernel.line or kernel_line()

    def _line_of(self, operation: InFlight) -> str:
        assert isinstance(operation, MockOperation), "the kernel runs under the mock runtime"
        return operation.line

    def _awaiting(self, operation: InFlight) -> Steps[None]:
        assert isinstance(operation, MockOperation), "the kernel runs under the mock runtime"
        operation.settle()
        self._waited(operation, self._kernel.engine.now_ps)
        yield from ()

    def await_writers(self, values: Iterable[object]) -> None:
        """Wait until no operation writes over a value that is read now."""
        self._kernel.block(self.awaiting_writers(values))

    def await_users(self, value: Value | None) -> None:
        """Wait until no operation uses a value that is written over now, if there is one."""
        if value is not None:
            self._kernel.block(self.awaiting_users(value))

    def await_all(self) -> None:
        """Wait until no operation is open."""
        self._kernel.block(self.awaiting_all())

    def await_users_from(self, address: int) -> None:
        """Wait until no operation uses TCM behind `address`."""
        self._kernel.block(self.awaiting_users_from(address))
