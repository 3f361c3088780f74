"""Operations that a kernel has started and that run beside it: matrix products and receives."""

from collections.abc import Callable
from typing import Any

from runtime.language.value import Value
from sip_node.chip.completion import Completion
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_wait import KernelWait, PeerWait


class Operation:
    """An operation in flight; `result` is the value that it leaves in TCM, if any.

    `peer` describes the wait for the peer that it depends on. An operation that depends on no peer
    has `earliest_end_ps` instead, which returns a lower bound for its end.
    """

    def __init__(
        self,
        operations: "Operations",
        done: Completion[Any],
        result: Value | None,
        *,
        peer: PeerWait | None = None,
        earliest_end_ps: Callable[[], int] | None = None,
    ) -> None:
        self._operations = operations
        self.done, self.result = done, result
        self.peer, self.earliest_end_ps = peer, earliest_end_ps

    def completion(self) -> Completion[Any]:
        """`done`, as a call that a program waits for."""
        return self.done

    def wait(self) -> Value | None:
        """Block the kernel until the operation is complete."""
        self._operations.await_end(self)
        return self.result


class Operations:
    """The operations of one kernel for which it has not waited, in the order of their start."""

    def __init__(self, issuer: CommandIssuer, wait: KernelWait) -> None:
        self._issuer, self._wait = issuer, wait
        self._open: list[Operation] = []

    def started(
        self,
        done: Completion[Any],
        result: Value | None,
        *,
        peer: PeerWait | None = None,
        earliest_end_ps: Callable[[], int] | None = None,
    ) -> Operation:
        """Note an operation that has started."""
        operation = Operation(self, done, result, peer=peer, earliest_end_ps=earliest_end_ps)
        self._open.append(operation)
        return operation

    def await_end(self, operation: Operation) -> None:
        """Block until an operation is complete."""
        if operation in self._open:
            self._open.remove(operation)
        done = operation.done
        # An operation that is complete blocks nothing, so it must not show as a wait.
        if done.done:
            if done.error is not None:
                raise done.error
            return
        self._wait.begin(operation.peer)
        if operation.earliest_end_ps is not None:
            self._wait.until(operation.earliest_end_ps)
        self._issuer.wait(operation.completion)
        self._wait.end()

    def await_all(self) -> None:
        """Block until no operation is open: a kernel ends when all that it started has ended."""
        while self._open:
            self._open[0].wait()
