"""Clocks of a run: what is complete, for whom. One event is before another if the clock of the
second one has it.

A clock has two parts. `done` has the commands that are complete, by SIP: with each, all that its
kernels did. `known` has, for commands that still run, the number of the last call up to which each
thread is complete; it has the numbers of single operations in flight as well.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class DoneCommands(NamedTuple):
    """The commands up to `until`, of which the first is 1, and `until` + 1 + i for each bit i of
    `others`.
    """

    until: int
    others: int = 0

    def has(self, command: int) -> bool:
        """Whether a command is among them."""
        return command <= self.until or bool(self.others >> command - self.until - 1 & 1)

    def without(self, commands: int) -> int:
        """The given commands that are not among them; bit i of `commands` is command i."""
        rest = commands >> self.until + 1
        return (rest & ~self.others) << self.until + 1

    def latest_of_both(self, other: "DoneCommands") -> int:
        """The greatest command that is among both, 0 for none."""
        less, more = sorted((self, other))
        further = more.until - less.until
        both = less.others & (more.others << further | (1 << further) - 1)
        return less.until + both.bit_length()


Done = Mapping[int, DoneCommands]
Command = tuple[int, int]
"""A SIP, and the number of a command."""
Known = Mapping[Command, Mapping[int, int]]
_NONE = DoneCommands(0)


class CompletionClock(NamedTuple):
    """A point of a run. Its parts are shared, and never changed."""

    done: Done
    known: Known

    def latest(self, command: Command, key: int) -> int:
        """The last call up to which a thread of a command is complete, -1 for none."""
        return self.known.get(command, _NO_CALLS).get(key, -1)


CommandClocks = Mapping[Command, CompletionClock]
"""Clocks of commands."""
_NO_CALLS: Mapping[int, int] = {}
START = CompletionClock({}, {})


def done_of(clock: CompletionClock, sip: int) -> DoneCommands:
    """The commands of a SIP that are complete."""
    return clock.done.get(sip, _NONE)


def is_done(clock: CompletionClock, command: Command) -> bool:
    """Whether a command is complete."""
    sip, number = command
    return clock.done.get(sip, _NONE).has(number)


def joined(one: CompletionClock, other: CompletionClock) -> CompletionClock:
    """The clock of what comes after both."""
    if one is other:
        return one
    done = _both(one.done, other.done)
    known = _latest(one.known, other.known, done, is_new=done is not one.done)
    return CompletionClock(done, known)


def joined_all(clocks: Iterable[CompletionClock]) -> CompletionClock:
    """The clock of what comes after all."""
    result = START
    for each in clocks:
        result = joined(result, each)
    return result


def with_done(clock: CompletionClock, command: Command) -> CompletionClock:
    """A clock in which a command is complete, too."""
    sip, number = command
    of_sip = clock.done.get(sip, _NONE)
    if of_sip.has(number):
        return clock
    added = _complete(of_sip.until, of_sip.others | 1 << number - of_sip.until - 1)
    done = {**clock.done, sip: added}
    return CompletionClock(done, _latest(clock.known, clock.known, done, is_new=True))


def with_known(clock: CompletionClock, command: Command, key: int, number: int) -> CompletionClock:
    """A clock in which a thread of a command is complete up to a call, too."""
    calls = clock.known.get(command, _NO_CALLS)
    if calls.get(key, -1) >= number:
        return clock
    return CompletionClock(clock.done, {**clock.known, command: {**calls, key: number}})


def _complete(until: int, others: int) -> DoneCommands:
    if others & 1:
        run = (~others & others + 1).bit_length() - 1
        return DoneCommands(until + run, others >> run)
    return DoneCommands(until, others)


def _both(one: Done, other: Done) -> Done:
    if one is other or not other:
        return one
    if not one:
        return other
    merged: dict[int, DoneCommands] = {}
    for sip, news in other.items():
        own = one.get(sip, _NONE)
        if own is not news:
            less, more = sorted((own, news))
            union = more.others | less.others >> more.until - less.until
            if union != own.others or own.until != more.until:
                merged[sip] = news if (more.until, union) == news else _complete(more.until, union)
    # The same object where nothing is new, so that later joins are short.
    return {**one, **merged} if merged else one


def _latest(one: Known, other: Known, done: Done, *, is_new: bool) -> Known:
    """The calls of both, of the commands that are not complete; `is_new` is whether some may be
    complete that are not so for `one`.
    """
    merged: dict[Command, Mapping[int, int]] = {}
    if one is not other:
        for command, news in other.items():
            own = one.get(command)
            if own is not news and not done.get(command[0], _NONE).has(command[1]):
                both = news if own is None else _latest_calls(own, news)
                if both is not own:
                    merged[command] = both
    result = {**one, **merged} if merged else one
    if not is_new:
        return result
    complete = [command for command in one if done.get(command[0], _NONE).has(command[1])]
    if complete:
        return {command: result[command] for command in result if command not in complete}
    return result


def _latest_calls(one: Mapping[int, int], other: Mapping[int, int]) -> Mapping[int, int]:
    if len(one) < len(other):
        one, other = other, one
    news = {key: number for key, number in other.items() if one.get(key, -1) < number}
    return {**one, **news} if news else one
