"""Named ranges of a rank's program, with the time that its device spends on what they submit.

A program enqueues, and goes on in the same moment of simulated time: the time of a range is that of
its commands. It begins with the release of the first of them and ends with the end of the last one.
A range without commands has the time in which the program was in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

MOST_RANGES = 1 << 16
"""The ranges that are kept: the first ones to end."""
_LONGEST_NAME = 200


class TimedCommand(Protocol):
    """A command of the device (`runtime.core.device.Handle`) as far as ranges use it."""

    @property
    def stream(self) -> int:
        """The number of its stream."""
        ...

    @property
    def done(self) -> bool:
        """Whether the command is complete, so that its times are known."""
        ...

    @property
    def released_ps(self) -> int:
        """The time at which the IO_CPU released it."""
        ...

    @property
    def device_done_ps(self) -> int:
        """The time at which the IO_CPU had seen its end."""
        ...


class ProgramRange(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """A range that is complete on the device."""

    name: str
    start_ps: int
    end_ps: int


@dataclass
class _OpenRange:
    """`first` and `last` are the first and the last command of each stream."""

    name: str
    start_ps: int
    end_ps: int = 0
    first: dict[int, TimedCommand] = field(default_factory=dict[int, TimedCommand])
    last: dict[int, TimedCommand] = field(default_factory=dict[int, TimedCommand])

    def add(self, first: TimedCommand, last: TimedCommand) -> None:
        self.first.setdefault(first.stream, first)
        self.last[last.stream] = last

    def complete(self) -> ProgramRange:
        # A stream runs its commands in order, so its first command begins first, and its last one
        # ends last: the other commands of the range need not be kept.
        starts_ps = [each.released_ps for each in self.first.values()] or [self.start_ps]
        ends_ps = [each.device_done_ps for each in self.last.values()] or [self.end_ps]
        return ProgramRange(self.name, min(starts_ps), max(ends_ps))


class ProgramRanges:
    """The ranges of one rank, which nest as `with` blocks do."""

    def __init__(self) -> None:
        self._open: list[_OpenRange] = []
        # Those that have ended in the program, in this order.
        self._ended: list[_OpenRange] = []
        self._complete: list[ProgramRange] = []

    def begin(self, name: str, now_ps: int) -> None:
        """The program enters a range."""
        self._open.append(_OpenRange(name[:_LONGEST_NAME], now_ps))

    def end(self, now_ps: int) -> None:
        """The program leaves the range that it has entered last."""
        ended = self._open.pop()
        ended.end_ps = now_ps
        # The commands of an inner range belong to the range around it as well.
        if self._open:
            for stream, last in ended.last.items():
                self._open[-1].add(ended.first[stream], last)
        if len(self._ended) + len(self._complete) < MOST_RANGES:
            self._ended.append(ended)
        # Not to keep the commands of a long program.
        done = 0
        while done < len(self._ended) and all(e.done for e in self._ended[done].last.values()):
            done += 1
        self._complete += [each.complete() for each in self._ended[:done]]
        del self._ended[:done]

    def submitted(self, command: TimedCommand) -> None:
        """The program has submitted a command."""
        if self._open:
            self._open[-1].add(command, command)

    def complete(self) -> Sequence[ProgramRange]:
        """All ranges, at the end of a run, in the order of their ends in the program."""
        return [*self._complete, *(each.complete() for each in self._ended)]
