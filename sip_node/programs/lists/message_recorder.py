"""Records kernels that send and receive, such as those of collectives.

A receive in place has a message as its result: a value in the slots of a ring, or where it was
copied. Which address that is depends on the slots before it, so a list names the receive.
"""

from collections.abc import Collection
from typing import Any

from runtime.core.dtypes import DType
from runtime.language.value import Pointer, Shape, Value
from sip_node.programs.lists.commands import ListedCommand, ListedStart
from sip_node.programs.lists.places import (
    ListedValue,
    ListRun,
    MessagePlace,
    PointerPlace,
    view_of,
)
from sip_node.programs.lists.recorder import CommandRecorder, RecordedOperation
from sip_node.programs.program import Steps

_MESSAGES, _APART = 1 << 61, 1 << 32
"""The address of message 0 while a list is recorded, and the distance between two of them: no
value has such an address, and no message is that long."""


class ListedSend(ListedCommand, frozen=True, kw_only=True):
    """A send for which the kernel waits."""

    direction: str
    value: ListedValue

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        return run.kernel.sending(self.direction, run.value(self.value))


class ListedSendStart(ListedStart, frozen=True, kw_only=True):
    """A send beside the kernel."""

    direction: str
    value: ListedValue

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        value = run.value(self.value)
        self.started(run, (yield from run.kernel.beginning_send(self.direction, value)))


class ListedReceive(ListedStart, frozen=True, kw_only=True):
    """A receive, to a new value, over a value, or to memory."""

    direction: str | None
    shape: Shape
    dtype: DType
    target: ListedValue | PointerPlace | None

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        target = self.target
        if target is not None:
            target = run.pointer(target) if isinstance(target, PointerPlace) else run.value(target)
        receiving = run.kernel.receiving(
            self.direction, self.shape, self.dtype, target, in_place=False
        )
        operation = self.started(run, (yield from receiving))
        if target is None:
            run.values.append(operation.value)


class ListedMessage(ListedStart, frozen=True, kw_only=True):
    """A receive in place, or over `target`."""

    direction: str | None
    shape: Shape
    dtype: DType
    target: ListedValue

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        target = run.value(self.target)
        receiving = run.kernel.receiving(
            self.direction, self.shape, self.dtype, target, in_place=True
        )
        run.messages[self.number] = self.started(run, (yield from receiving))


class ListedRelease(ListedCommand, frozen=True, kw_only=True):
    """The release of a message."""

    message: ListedValue

    def steps(self, run: ListRun) -> Steps[None]:
        """See `ListedCommand`."""
        yield from run.kernel.releasing(run.value(self.message))
        if isinstance(self.message, MessagePlace):
            # It keeps the elements of the message.
            del run.messages[self.message.operation]


class MessageRecorder(CommandRecorder):
    """The recorder of a kernel that may send and receive; `exchanges` is whether it does."""

    def __init__(self, *parts: Any, closed: Collection[int]) -> None:
        super().__init__(*parts, closed=closed)
        self._messages: dict[int, Value] = {}
        self.exchanges = False

    def send(self, direction: str, value: Value) -> None:
        """See `KernelContext`."""
        self.exchanges = True
        self.add(ListedSend, direction=direction, value=self.place(value))

    def send_async(self, direction: str, value: Value) -> RecordedOperation:
        """See `KernelContext`."""
        self.exchanges = True
        place, number = self.place(value), self.started()
        self.add(ListedSendStart, direction=direction, value=place, number=number)
        return RecordedOperation(self, number, None)

    def recv(
        self,
        direction: str | None,
        shape: Shape,
        dtype: DType,
        target: Value | Pointer | None = None,
        *,
        in_place: bool = False,
    ) -> RecordedOperation:
        """See `KernelContext`."""
        self.exchanges = True
        number, place = self.started(), None
        if isinstance(target, Pointer):
            place = self.pointer_place(target)
        elif target is not None:
            self.writes_over, place = True, self.place(target)
        kind = ListedMessage if in_place else ListedReceive
        self.add(kind, direction=direction, shape=shape, dtype=dtype, target=place, number=number)
        if isinstance(target, Pointer):
            return RecordedOperation(self, number, None)
        if not in_place:
            result = self.made(shape, dtype) if target is None else target
            return RecordedOperation(self, number, result)
        message = Value(shape, dtype, None, _MESSAGES + number * _APART)
        self._messages[number] = message
        return RecordedOperation(self, number, message)

    def release(self, value: Value) -> None:
        """See `KernelContext`."""
        self.add(ListedRelease, message=self.place(value))

    def place(self, value: Value) -> ListedValue:
        """See `CommandRecorder`."""
        if value.address < _MESSAGES:
            return super().place(value)
        number = (value.address - _MESSAGES) // _APART
        return MessagePlace(number, view_of(self._messages[number], value))
