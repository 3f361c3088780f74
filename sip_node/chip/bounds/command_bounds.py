"""Command bounds: the earliest time at which a SIP can start another kernel that sends.

A kernel starts with a launch that the IO_CPU stamps. Such a launch is either on its way already, or
its rank has not submitted it yet. Both take time first:

    rank       waits ......................... resumes -- submit C4
    host       C1 C2 C3 -->                      ^               |
    IO_CPU          C1 |== runs ==| C2 |= runs =| C3 |= runs =|  '--> C4: stamp --> PEs --> port
                                                 '-- answer --'

- A command that waits at the IO_CPU is released when those for which it waits are complete.
- Every command takes a least time: the path to a PE and back, or its bytes at the narrowest link.
- A rank that waits for a command submits nothing before the answer to it arrives. That holds for
  every rank, since a rank program runs only in events of this SIP, between two waits.
- The answer of a cube comes behind the packets that its kernels have sent over the same link.
- A kernel that computes until some time does not end before it, and so neither does its launch.

All times are lower bounds. They follow from latencies without contention, and from bytes on links
that `impl:` does not replace; contention only delays. So no later knowledge lowers a bound.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from msgspec import Struct, field

from runtime.core.requests import KernelLaunchMsg, MemoryReadMsg, MemoryWriteMsg, Request
from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.server import FifoServer
from sip_node.kernel.exact import later_ps

Until = Callable[[], int]
"""Returns a time before which a kernel does not go on; a later call may return a later time."""

_FEW = 8
"""Waiting launches with a bound each; more are bounded by the base, so a promise stays cheap."""
_DEPTH = 4
"""The number of streams through which a chain of waits is followed."""
_RUNS, _ENDED = -1, -2
"""The rank program may submit in the next event; it has returned, and submits nothing."""


class CommandTimes(NamedTuple):
    """The least times of commands in one SIP, in picoseconds.

    The host sends a launch `submit_ps` after the rank has submitted it, `down_ps` is from there to
    the IO_CPU, and `up_ps` back. From the stamp of a launch, its first message is at the port after
    `message_ps`, and its end at the IO_CPU after `launch_ps`; `ended_ps` of it is from a PE to the
    IO_CPU. Any other command for a PE takes `order_ps`. `byte_ps` is the time of a byte between
    host and IO_CPU, 0 if not known.
    """

    submit_ps: int = 0
    down_ps: int = 0
    up_ps: int = 0
    message_ps: int = 0
    launch_ps: int = 0
    ended_ps: int = 0
    order_ps: int = 0
    byte_ps: Fraction = Fraction(0)


_NO_TIMES = CommandTimes()


class AnswerLink(NamedTuple):
    """A link that the answers of a cube pass, and their time from there to the IO_CPU."""

    link: FifoServer
    after_ps: int


class _OpenCommand(Struct):
    """A command that is not complete at the IO_CPU.

    From its release there it takes `least_ps` at least, `answer_ps` to the last byte of its answer;
    all of its stream up to its end take `total_ps`. It is neither released before `released_ps` nor
    complete before `early_ps` or `until()`. `launches` of it may send and are not stamped, and of
    the kernels that have not ended `running` counts those whose cube answers over a link.
    """

    stream: int
    waits_for: tuple[int, ...]
    least_ps: int
    answer_ps: int
    total_ps: int
    released_ps: int
    early_ps: int
    launches: int
    until: Until | None = None
    running: Counter[AnswerLink] = field(default_factory=Counter)


class CommandBounds:
    """The commands of one SIP that are not complete at its IO_CPU."""

    def __init__(self, times: CommandTimes = _NO_TIMES) -> None:
        self._times = times
        self._open: dict[int, _OpenCommand] = {}
        self._streams: dict[int, deque[int]] = {}
        # Launches that may send and are not stamped, by command.
        self._unstamped: dict[int, _OpenCommand] = {}
        # When the link of the host is free again: all that it sends passes this link in turn.
        self._link_free_ps = 0
        self._rank = _RUNS
        # The earliest answer to the command for which the rank waits, once that is complete.
        self._answered_ps = 0

    def submitted(
        self,
        number: int,
        stream: int,
        waits_for: tuple[int, ...],
        departs_ps: int,
        requests: Sequence[Request],
    ) -> None:
        """The host sends a command at `departs_ps`; it waits for the commands `waits_for`."""
        times, waiting = self._times, self._streams.setdefault(stream, deque())
        # A stream is serial, so its commands take the sum of their least times.
        before_ps = self._open[waiting[-1]].total_ps if waiting else 0
        least_ps = max((self._least_ps(request) for request in requests), default=0)
        written = sum(each.nbytes for each in requests if isinstance(each, MemoryWriteMsg))
        read = sum(each.nbytes for each in requests if isinstance(each, MemoryReadMsg))
        # All commands leave by one link, so the bytes of earlier writes delay this command as well.
        self._link_free_ps = max(self._link_free_ps, departs_ps) + ceil(written * times.byte_ps)
        self._open[number] = command = _OpenCommand(
            stream=stream,
            waits_for=waits_for,
            least_ps=least_ps,
            answer_ps=ceil(read * times.byte_ps),
            total_ps=before_ps + least_ps,
            released_ps=departs_ps + times.down_ps,
            # A command is complete only when its last byte has reached the IO_CPU.
            early_ps=self._link_free_ps + times.down_ps,
            launches=sum(_may_send(request) for request in requests),
        )
        waiting.append(number)
        if command.launches:
            self._unstamped[number] = command

    def released(self, number: int, now_ps: int) -> None:
        """The IO_CPU releases a command that has waited."""
        self._open[number].released_ps = now_ps

    def stamped(self, number: int, start_ps: int, launch: KernelLaunchMsg) -> None:
        """The IO_CPU stamps a launch of a command: its kernel starts at `start_ps`, not earlier."""
        command = self._open[number]
        self.not_before(number, start_ps)
        if _may_send(launch):
            command.launches -= 1
            if not command.launches:
                del self._unstamped[number]

    def not_before(self, number: int, end_ps: int, until: Until | None = None) -> None:
        """A kernel of a command ends at `end_ps` or later, and at `until()` or later."""
        command = self._open[number]
        command.early_ps = max(command.early_ps, later_ps(end_ps, self._times.ended_ps))
        # Of several kernels the longest wait counts: the command ends after all of them.
        if until is not None and (command.until is None or end_ps >= command.until()):
            command.until = until

    def complete_at(self, number: int, end_ps: int) -> None:
        """A launch of a command is complete at the IO_CPU at that time, so the command is not
        complete before.
        """
        command = self._open[number]
        command.early_ps = max(command.early_ps, end_ps)

    def running(self, number: int, answers: AnswerLink) -> None:
        """A kernel of a command has not ended; then its cube answers over a link."""
        self._open[number].running[answers] += 1

    def ended(self, number: int, answers: AnswerLink) -> None:
        """A kernel that `running` has counted has ended."""
        self._open[number].running[answers] -= 1

    def completed(self, number: int, now_ps: int) -> None:
        """A command is complete at the IO_CPU: its answer leaves now."""
        command = self._open.pop(number)
        waiting = self._streams[command.stream]
        # The commands of a stream are serial, so the first one completes first.
        waiting.remove(number)
        if not waiting:
            del self._streams[command.stream]
        if number == self._rank:
            # What is read goes on to the host while the last of it comes to the IO_CPU.
            end_ps = max(now_ps, command.released_ps + command.answer_ps)
            self._answered_ps = end_ps + self._times.up_ps

    def rank_waits(self, number: int | None) -> None:
        """The rank program submits nothing before the answer to a command; None: to any command."""
        self._rank = _RUNS if number is None else number
        self._answered_ps = 0

    def rank_ended(self) -> None:
        """The rank program has returned: it submits nothing more."""
        self._rank = _ENDED

    def earliest_message_ps(self, base_ps: int) -> int:
        """No kernel which is not stamped yet has a message at the port before this time.

        That holds if no event is executed before `base_ps`.
        """
        times = self._times
        # A launch to come is either one that the rank has not submitted, or one that is not
        # stamped: the earlier of the two bounds both.
        stamp_ps = later_ps(self._resume_ps(base_ps), times.submit_ps + times.down_ps)
        if len(self._unstamped) > _FEW:
            stamp_ps = base_ps
        for command in () if stamp_ps <= base_ps else self._unstamped.values():
            stamp_ps = min(stamp_ps, self._released_ps(command, base_ps, _DEPTH))
        return later_ps(max(base_ps, stamp_ps), times.message_ps)

    def _resume_ps(self, base_ps: int) -> int:
        """The earliest time at which the rank program can go on."""
        if self._rank == _RUNS:
            return base_ps
        if self._rank == _ENDED:
            return NEVER_PS
        command = self._open.get(self._rank)
        if command is None:
            # Complete at the IO_CPU, so its answer is on the way up.
            return max(base_ps, self._answered_ps)
        released_ps = self._released_ps(command, base_ps, _DEPTH)
        done_ps = self._done_ps(command, base_ps, _DEPTH)
        return max(done_ps, released_ps + command.answer_ps) + self._times.up_ps

    def _released_ps(self, command: _OpenCommand, base_ps: int, depth: int) -> int:
        """No earlier release of a command; it may lie in the past."""
        released_ps = command.released_ps
        first = self._open[self._streams[command.stream][0]]
        if first is not command:
            # All before it in its stream run one after another, and then it is released.
            between_ps = command.total_ps - command.least_ps - first.total_ps
            return max(released_ps, self._done_ps(first, base_ps, depth) + between_ps)
        # Streams may wait for each other in a chain as long as the program. Where it is not
        # followed, the bound is earlier and stays valid.
        for number in command.waits_for if depth else ():
            earlier = self._open.get(number)
            if earlier is not None:
                released_ps = max(released_ps, self._done_ps(earlier, base_ps, depth - 1))
        return released_ps

    def _done_ps(self, command: _OpenCommand, base_ps: int, depth: int) -> int:
        """No earlier end of a command at the IO_CPU."""
        done_ps = self._released_ps(command, base_ps, depth) + command.least_ps
        if command.until is not None:
            done_ps = max(done_ps, command.until() + self._times.ended_ps)
        for answers, kernels in command.running.items():
            # The answer comes behind all packets that have reserved the link.
            if kernels:
                done_ps = max(done_ps, answers.link.free_ps + answers.after_ps)
        return max(base_ps, command.early_ps, done_ps)

    def _least_ps(self, request: Request) -> int:
        if isinstance(request, KernelLaunchMsg):
            return self._times.launch_ps
        if isinstance(request, MemoryReadMsg | MemoryWriteMsg):
            return 0
        return self._times.order_ps


def _may_send(request: Request) -> bool:
    """Whether a request launches a kernel with a queue table or a transfer: others cannot send."""
    if not isinstance(request, KernelLaunchMsg):
        return False
    return bool(request.queues) or request.transfer is not None
