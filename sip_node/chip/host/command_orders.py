"""Records for which earlier commands each command waits, and why, in a run with records.

The host sends the IO_CPU only what is not answered yet (`Streams`). Which commands are answered by
then depends on times, and the rules do not: so the records have all of them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from runtime.core.device import Handle
from runtime.core.requests import Transfer
from runtime.core.run_tables import ORDERS, Order, RunTable
from sip_node.chip.host.streams import Command, Resource, ThreadGroup, is_independent, reads_only

_PACK = ORDERS.packer.pack


class OrderSink(Protocol):
    """Takes texts and rows: the recorder of a SIP."""

    def text(self, text: str) -> int:
        """The index of a text."""
        ...

    def add(self, table: RunTable, rows: bytes) -> None:
        """Append consecutive packed rows to a table."""
        ...


class _User(NamedTuple):
    """A command that uses a tensor, and the transfer that it consists of, if it is one."""

    number: int
    transfer: Transfer | None


class CommandOrders:
    """The rules of `Streams`, applied to all commands of a rank, answered or not."""

    def __init__(self, recorder: OrderSink) -> None:
        self._recorder = recorder
        self._latest: dict[int, int] = {}
        # By stream: what its next command was ordered to wait for, as a set in order.
        self._ordered: dict[int, dict[int, None]] = {}
        # Of every tensor, the latest command of each stream, and all transfers since.
        self._users: dict[str, dict[int, _User]] = {}
        self._threads: dict[ThreadGroup, dict[int, int]] = {}

    def order_after(self, stream: int, handles: Iterable[Handle]) -> None:
        """The next command of `stream` waits for `handles`."""
        ordered = self._ordered.setdefault(stream, {})
        for each in handles:
            if isinstance(each, Command):
                ordered[each.number] = None

    def order_after_stream(self, stream: int, other: int) -> None:
        """The next command of `stream` waits for what the next one of `other` would wait for."""
        ordered = self._ordered.setdefault(stream, {})
        ordered.update(dict.fromkeys(self.preceding(other)))

    def preceding(self, stream: int) -> list[int]:
        """The commands that the next one of `stream` waits for by the first two rules."""
        own = [self._latest[stream]] if stream in self._latest else []
        return own + list(self._ordered.get(stream, {}))

    def latest(self) -> list[int]:
        """The last command of every stream."""
        return list(self._latest.values())

    def submitted(self, command: Command) -> None:
        """A command has its number: add the rows of its orders."""
        number, stream = command.number, command.stream
        rows = list[tuple[int, Order, str]]()
        if stream in self._latest:
            rows.append((self._latest[stream], Order.STREAM, ""))
        rows += [(each, Order.EVENT, "") for each in self._ordered.pop(stream, {})]
        self._latest[stream] = number
        # Resources are a set: their order must not be that of hashes.
        names = sorted(each for each in command.resources if isinstance(each, str))
        for name in names:
            rows += self._after_users(name, command)
        for group in _groups(command.resources):
            rows += self._after_threads(group, number, stream)
        text = self._recorder.text
        packed = [
            _PACK(number, after, text(reason), text(tensor)) for after, reason, tensor in rows
        ]
        self._recorder.add(ORDERS, b"".join(packed))

    def _after_users(self, name: str, command: Command) -> list[tuple[int, Order, str]]:
        users = self._users.setdefault(name, {})
        rows = [
            (user.number, Order.TENSOR, name)
            for stream, user in users.items()
            if stream != command.stream and not is_independent(user.transfer, command)
        ]
        if command.transfer is None and not reads_only(command):
            # All later users wait for it, and so for those before it.
            users.clear()
        users[command.stream] = _User(command.number, command.transfer)
        return rows

    def _after_threads(
        self, group: ThreadGroup, number: int, stream: int
    ) -> list[tuple[int, Order, str]]:
        thread, pes = group
        rows = [
            (after, Order.PE, "")
            for (other, others), users in self._threads.items()
            if other == thread and not pes.isdisjoint(others)
            for of_stream, after in users.items()
            if of_stream != stream
        ]
        self._threads.setdefault(group, {})[stream] = number
        return rows


def _groups(resources: Iterable[Resource]) -> Sequence[ThreadGroup]:
    groups = [each for each in resources if not isinstance(each, str)]
    return sorted(groups, key=lambda each: (each[0], sorted(each[1])))
