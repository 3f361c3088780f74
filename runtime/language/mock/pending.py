"""The pending results of the mock runtime, whose operations are complete when they have started."""

from collections.abc import Callable

from runtime.language.memory_in_flight import MemoryInFlight, MemoryUse
from runtime.language.mock.queues import MockQueues, MockReceive
from runtime.language.refusals import PENDING, PENDING_ADVICE, refuse_operators
from runtime.language.value import Value


class Complete:
    """The result of an operation that is complete, and in flight until the kernel waits for it."""

    def __init__(self, value: Value | None, memory: MemoryInFlight, use: MemoryUse) -> None:
        self.value, self._memory = value, memory
        memory.begin(self, use)

    def wait(self) -> Value | None:
        """The kernel has waited."""
        self._memory.end(self)
        return self.value


class CompleteValue(Complete):
    """A value in TCM that is complete."""

    def __init__(self, value: Value, memory: MemoryInFlight, use: MemoryUse) -> None:
        super().__init__(value, memory, use)
        self.loaded = value

    def wait(self) -> Value:
        """The value."""
        super().wait()
        return self.loaded


class ReceiveToMemory(Complete):
    """A receive to memory, which may not be complete."""

    def __init__(self, receive: MockReceive, memory: MemoryInFlight, use: MemoryUse) -> None:
        super().__init__(None, memory, use)
        self.receive = receive

    def wait(self) -> None:
        """Let other PEs run until the elements are in memory."""
        super().wait()
        self.receive.wait()


class ChainResult:
    """The results of a chain, which are complete."""

    def __init__(self, returned: Value | tuple[Value, ...]) -> None:
        self.returned = returned

    def wait(self) -> Value | tuple[Value, ...]:
        """The value, or all of them."""
        return self.returned


class SentInBackground:
    """A message in the background."""

    def __init__(self, queues: MockQueues, left: Callable[[], bool], target: str) -> None:
        self._queues, self._left, self._target = queues, left, target

    def wait(self) -> None:
        """Let other PEs run until the last slot has left."""
        self._queues.until(self._left, f"send {self._target}")


for _result in (Complete, ChainResult, SentInBackground):
    refuse_operators(_result, PENDING, PENDING_ADVICE)
