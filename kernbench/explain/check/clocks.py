"""Clocks of a run: what is complete, for whom. One event is before another if the clock of the
second one has it.

A clock has two parts. `done` has a bit for each command that is complete, by SIP: with it, all that
its kernels did. `known` has, for threads of commands that still run, the number of the last call up
to which the thread is complete; it has the numbers of single operations in flight as well.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

Done = Mapping[int, int]
Known = Mapping[int, int]


class CompletionClock(NamedTuple):
    """A point of a run. Its parts are shared, and never changed."""

    done: Done
    known: Known


START = CompletionClock({}, {})


def joined(one: CompletionClock, other: CompletionClock) -> CompletionClock:
    """The clock of what comes after both."""
    return CompletionClock(_or(one.done, other.done), _latest(one.known, other.known))


def joined_all(clocks: Iterable[CompletionClock]) -> CompletionClock:
    """The clock of what comes after all."""
    result = START
    for each in clocks:
        result = joined(result, each)
    return result


def with_done(clock: CompletionClock, sip: int, command: int) -> CompletionClock:
    """A clock in which a command is complete, too."""
    done = dict(clock.done)
    done[sip] = done.get(sip, 0) | 1 << command
    return CompletionClock(done, clock.known)


def with_known(clock: CompletionClock, key: int, number: int) -> CompletionClock:
    """A clock in which a thread is complete up to a call, too."""
    if clock.known.get(key, -1) >= number:
        return clock
    return CompletionClock(clock.done, {**clock.known, key: number})


def is_done(clock: CompletionClock, sip: int, command: int) -> bool:
    """Whether a command is complete."""
    return bool(clock.done.get(sip, 0) >> command & 1)


def _or(one: Done, other: Done) -> Done:
    if one is other or not other:
        return one
    if not one:
        return other
    merged = dict(one)
    for sip, bits in other.items():
        merged[sip] = merged.get(sip, 0) | bits
    # The same object where nothing is new, so that later joins are short.
    return one if merged == one else other if merged == other else merged


def _latest(one: Known, other: Known) -> Known:
    if one is other or not other:
        return one
    if not one:
        return other
    if len(one) < len(other):
        one, other = other, one
    news = {key: number for key, number in other.items() if one.get(key, -1) < number}
    return {**one, **news} if news else one
