"""The streams of a rank, and which command waits for which.

A command is what CUDA calls one: requests that run together. Work in a stream is serial. Across
streams a command waits for commands that it was ordered to wait for, and for earlier ones that use
one of its resources: a tensor, or a hardware thread of a PE.

    default         C1 --> C2 --------------> C3    C3 waits for C2, for A1 if they share a tensor
                            |                 ^
    communication           '--> A1 - - - - - '     A1 was ordered to wait for C2

Of every stream only the latest of those commands counts, because it completes last. What the host
has an answer to is complete and forgotten here; at the IO_CPU more may be complete by then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from runtime.core.device import COMMUNICATION_STREAM, Handle
from runtime.core.requests import KernelLaunchMsg, MemoryReadMsg, Request, Transfer
from runtime.core.run_tables import NONE
from sip_node.chip.completion import Completion

ThreadGroup = tuple[str, frozenset[tuple[int, int]]]
"""A hardware thread, and the PEs (cube, pe) of a launch on it."""
Resource = str | ThreadGroup
"""The name of a tensor; or the threads of a launch, which share a thread with those of another
launch that overlap them.
"""


@dataclass
class Command(Handle):
    """A command of a stream; `finished` completes with the answer to the last of its requests.

    `left` of its requests are not answered. `after` is the command whose end let it begin, `line`
    that of the program which submitted it. The numbers of a rank rise in the order of submission.
    The value of `finished` is None, not the command: in a reference cycle, a command and its kernel
    would never be deleted.
    """

    number: int = 0
    why: str = ""
    resources: frozenset[Resource] = frozenset()
    waits_for: tuple[int, ...] = ()
    left: int = 0
    departed_ps: int = 0
    after: int = NONE
    line: str = ""
    finished: Completion[None] = field(default_factory=Completion[None])

    @property
    def transfer(self) -> Transfer | None:
        """The send or receive that the command consists of, if it is one."""
        launch = self.launch
        return None if launch is None else launch.transfer

    @property
    def launch(self) -> KernelLaunchMsg | None:
        """The launch that the command consists of, if it is one."""
        first = self.requests[0] if self.requests else None
        return first if isinstance(first, KernelLaunchMsg) else None


_Users = dict[int, Command]
"""The latest command of each stream."""


class _Ordered:
    """The open commands that the next command of a stream was ordered to wait for.

    `commands` are all of them by number, in the order of the calls, `latest` the latest one of each
    stream. Only these count: a program may order its stream to wait for thousands of collectives
    before it submits the command that waits.
    """

    __slots__ = ("commands", "latest")

    def __init__(self) -> None:
        self.commands: dict[int, Command] = {}
        self.latest: _Users = {}

    def add(self, command: Command) -> None:
        self.commands[command.number] = command
        known = self.latest.get(command.stream)
        if known is None or known.number < command.number:
            self.latest[command.stream] = command

    def remove(self, command: Command) -> None:
        self.commands.pop(command.number, None)
        if self.latest.get(command.stream) is command:
            del self.latest[command.stream]


class Streams:
    """The commands of a rank that are not answered, by stream, in the order of submission."""

    def __init__(self) -> None:
        self._open: dict[int, Command] = {}
        self._latest: dict[int, Command] = {}
        # Of every resource in use, the latest command of each stream.
        self._users: dict[str, _Users] = {}
        self._threads: dict[ThreadGroup, _Users] = {}
        self._ordered: dict[int, _Ordered] = {}
        self._numbers = 0
        self._streams = COMMUNICATION_STREAM

    @property
    def earliest(self) -> Command | None:
        """The command that was submitted first."""
        return next(iter(self._open.values()), None)

    def holding(self, command: Command) -> Command | None:
        """The command that holds up an open one: the first of those that it waits for, directly or
        not, that itself waits for none. None for a command that may run.
        """
        holder = None
        # A loop: a chain of waits is as long as a program without waits of its own.
        while (first := self.first_of(command)) is not None:
            command = holder = first
        return holder

    def first_of(self, command: Command) -> Command | None:
        """The first of the commands that an open one itself waits for."""
        return next((self._open[each] for each in command.waits_for if each in self._open), None)

    @property
    def open_commands(self) -> tuple[Command, ...]:
        """The commands that are not answered, in the order of submission."""
        return tuple(self._open.values())

    @property
    def submitted(self) -> int:
        """The number of commands that were submitted."""
        return self._numbers

    def new_stream(self) -> int:
        """The number of a new stream."""
        self._streams += 1
        return self._streams

    def submit(self, command: Command) -> None:
        """Append a command to its stream: sets its number, and the commands that it waits for."""
        self._numbers += 1
        command.number = self._numbers
        # Only a number is sent to the IO_CPU; it rises, so the greatest of a stream is the latest.
        latest: dict[int, int] = {}
        for earlier in self._conflicts(command):
            latest[earlier.stream] = max(earlier.number, latest.get(earlier.stream, 0))
        command.waits_for = tuple(sorted(latest.values()))
        self._open[command.number] = self._latest[command.stream] = command
        for resource in command.resources:
            self._users_of(resource)[command.stream] = command

    def complete(self, command: Command) -> None:
        """Remove a command that is answered."""
        del self._open[command.number]
        # Streams come and go, so nothing is kept of a stream without open commands.
        if self._latest[command.stream] is command:
            del self._latest[command.stream]
        for resource in command.resources:
            users = self._users_of(resource)
            if users[command.stream] is command:
                del users[command.stream]
                if not users:
                    self._forget(resource)
        for ordered in self._ordered.values():
            ordered.remove(command)

    def order_after(self, stream: int, handles: Sequence[Handle]) -> None:
        """The next command of `stream`, and with it all later ones, waits for `handles`."""
        ordered = self._ordered.setdefault(stream, _Ordered())
        for each in handles:
            assert isinstance(each, Command), "the handles of a rank are the commands of its host"
            if not each.done:
                ordered.add(each)

    def order_after_stream(self, stream: int, other: int) -> None:
        """The next command of `stream`, and with it all later ones, waits for what the next command
        of the stream `other` would wait for.
        """
        self.order_after(stream, self._preceding(other))

    def latest(self, stream: int) -> tuple[Command, ...]:
        """The open commands that the next command of `stream` waits for by rules 1 and 2."""
        own, ordered = self._latest.get(stream), self._ordered.get(stream)
        return (
            *(() if own is None else (own,)),
            *(() if ordered is None else ordered.commands.values()),
        )

    def all_latest(self) -> tuple[Command, ...]:
        """The last open command of every stream."""
        return tuple(self._latest.values())

    def _preceding(self, stream: int) -> list[Command]:
        """The commands of `latest` without those that complete before another one of them."""
        own, ordered = self._latest.get(stream), self._ordered.get(stream)
        preceding = [] if own is None else [own]
        if ordered is not None:
            preceding += ordered.latest.values()
        return preceding

    def _conflicts(self, command: Command) -> list[Command]:
        earlier = self._preceding(command.stream)
        # The commands after this one wait for it, and so for those too.
        self._ordered.pop(command.stream, None)
        # A stream is serial, so its latest user of a resource completes after all earlier ones.
        for resource in command.resources:
            for users in self._sharing(resource):
                earlier.extend(
                    each for each in users.values() if not is_independent(each.transfer, command)
                )
        return earlier

    def _sharing(self, resource: Resource) -> Iterator[_Users]:
        """The users of a tensor, or of threads that overlap those of a launch."""
        if isinstance(resource, str):
            yield self._users.get(resource, {})
            return
        # Launches in flight are on a few sets of PEs: a search in sets takes a tenth of the time
        # of a resource for each PE.
        thread, pes = resource
        for (other, others), users in self._threads.items():
            if other == thread and not pes.isdisjoint(others):
                yield users

    def _users_of(self, resource: Resource) -> _Users:
        if isinstance(resource, str):
            return self._users.setdefault(resource, {})
        return self._threads.setdefault(resource, {})

    def _forget(self, resource: Resource) -> None:
        if isinstance(resource, str):
            del self._users[resource]
        else:
            del self._threads[resource]


def is_independent(sent: Transfer | None, later: Command) -> bool:
    """Whether a command need not wait for an earlier one that uses one of its tensors, and is the
    transfer `sent`.

    Only for transfers: each is alone in its stream. Of another stream, that of the latest command
    would not do: the commands before it count, too.
    """
    if sent is None:
        return False
    if later.transfer is not None:
        return later.transfer.is_independent_of(sent)
    # A send only reads its tensor, so a copy from that tensor may overlap with it.
    return sent.end == "send" and reads_only(later)


def reads_only(command: Command) -> bool:
    """Whether a command is a copy from memory to the host."""
    return all(isinstance(request, MemoryReadMsg) for request in command.requests)


def resources_of(requests: Sequence[Request], tensors: frozenset[str]) -> frozenset[Resource]:
    """The resources that a command uses: its tensors, and the threads of the PEs of its launches.

    A thread runs one kernel at a time, so launches that share one run in the order of submission.
    The thread of transfers holds any number of them.
    """
    threads: list[Resource] = [
        (request.thread, frozenset(request.pes))
        for request in requests
        if isinstance(request, KernelLaunchMsg) and request.transfer is None
    ]
    return tensors.union(threads)
