"""The time of a pipelined ring all-reduce of one PE a rank, by the recurrence of its iterations.

The iterations, and what they wait for, are those of `runtime.ccl.pipelines.ring_pipeline`, for
messages that are used in the ring. All ranks do the same at the same times, so one rank is enough:
what it sends, it receives from the rank behind it. With message i sent as the i-th one, and a ring
of C messages,

    start(i)   = max(command(i), start(i-1) + m/B, release(i-C) + credit)
    arrival(i) = start(i) + alpha + m/B

and a command follows the previous command, the arrival of its message, the load of its own piece
and the addition. The commands of the PE CPU, the port of the memory slice and the link are modelled
as serial; packets that take turns at the port of the TCM are not.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

BytesTime = Callable[[int], Fraction | int]
"""The picoseconds that a number of bytes takes."""


@dataclass(frozen=True)
class IterationCosts:
    """The costs of an iteration, in picoseconds.

    `command_ps` is the issue of a command and `access_ps` that of a load or store, with its address
    translation. `alpha_ps` and `link_ps` are those of a message, from its DMA on; it has left the
    TCM after `left_ps`. A credit is back after `credit_ps`; with None there are always credits.
    A load and a store take `load_ps` and `store_ps` after their command, of which `slice_ps` on the
    memory slice, and `packet_ps` the first packet there.
    """

    command_ps: int
    access_ps: int
    alpha_ps: Fraction
    credit_ps: Fraction | None
    link_ps: BytesTime
    left_ps: BytesTime
    add_ps: BytesTime
    load_ps: BytesTime
    store_ps: BytesTime
    slice_ps: BytesTime
    packet_ps: BytesTime

    def without_credits(self) -> "IterationCosts":
        """No message waits for a credit."""
        return replace(self, credit_ps=None)

    def without_additions(self) -> "IterationCosts":
        """Additions take no time."""
        return replace(self, add_ps=_no_time)

    def without_memory(self) -> "IterationCosts":
        """Loads and stores take only their commands."""
        return replace(
            self, load_ps=_no_time, store_ps=_no_time, slice_ps=_no_time, packet_ps=_no_time
        )


def _no_time(_nbytes: int) -> int:
    return 0


@dataclass(frozen=True)
class RingMessages:
    """The messages of an all-reduce over `ranks` ranks: a chunk has messages of `sizes` bytes; a
    receive ring holds `in_ring` of them.

    A step has at most `lag` messages; `held` of them are sent on or stored and not yet released,
    and `posted` receives are posted ahead.
    """

    ranks: int
    sizes: Sequence[int]
    in_ring: int
    lag: int
    held: int
    posted: int

    @property
    def steps(self) -> int:
        """2(p-1): a reduce-scatter, then an all-gather."""
        return 2 * (self.ranks - 1)

    def iterations(self) -> Iterator[tuple[int, int]]:
        """(step whose message is received or -1, bytes) of every iteration."""
        count, last = len(self.sizes), self.steps - 1
        blocks, before = -(-count // self.lag), range(0)
        edges = [block * count // blocks for block in range(blocks + 1)]
        for start, stop in [*pairwise(edges), (count, count)]:
            block = range(start, stop)
            for index in range(max(len(before), len(block))):
                if index < len(before):
                    yield last, self.sizes[before[index]]
                if index < len(block):
                    yield -1, self.sizes[block[index]]
            yield from ((step, self.sizes[number]) for step in range(last) for number in block)
            before = block


def all_reduce_ps(messages: RingMessages, costs: IterationCosts) -> Fraction:
    """Time from the start of the kernels to the end of the last one."""
    return _RankPass(messages, costs).end_ps()


class _RankPass:
    """One rank at work; `_now_ps` is the time of its kernel."""

    def __init__(self, messages: RingMessages, costs: IterationCosts) -> None:
        self._messages, self._costs = messages, costs
        self._now_ps = self._link_free_ps = self._slice_free_ps = self._stored_ps = Fraction(0)
        self._released_ps: list[Fraction] = []
        self._arrivals_ps = deque[Fraction]()
        self._sent = 0
        # (iteration, time at which all that uses the message has ended)
        self._held = deque[tuple[int, Fraction]]()
        self._iterations = list(messages.iterations())
        self._unposted = sum(step >= 0 for step, _ in self._iterations)
        self._own = deque(nbytes for step, nbytes in self._iterations if step < messages.ranks - 1)
        self._buffers_ps = deque([Fraction(0)] * min(2 * self._messages.lag, len(self._own)))
        self._loaded_ps = deque[Fraction]()

    def end_ps(self) -> Fraction:
        """Carry out all iterations."""
        for _ in range(self._messages.posted):
            self._post()
        self._load_first()
        for number, (step, nbytes) in enumerate(self._iterations):
            while self._held and self._held[0][0] < number - self._messages.held:
                self._release_first()
            if step < 0:
                self._wait(self._loaded_ps.popleft())
                self._free_own(self._send(nbytes))
            else:
                self._receive(number, step, nbytes)
        while self._held:
            self._release_first()
        return max(self._now_ps, self._stored_ps)

    def _receive(self, number: int, step: int, nbytes: int) -> None:
        reduces = step < self._messages.ranks - 1
        self._wait(self._arrivals_ps.popleft())
        if reduces:
            self._wait(self._loaded_ps.popleft())
            self._now_ps += self._costs.add_ps(nbytes)
            self._release()
        used_ps = Fraction(0)
        if step < self._messages.steps - 1:
            used_ps = self._send(nbytes)
        if step >= self._messages.ranks - 2:
            self._now_ps += self._costs.access_ps
            self._stored_ps = self._now_ps + self._costs.store_ps(nbytes)
            used_ps = max(used_ps, self._stored_ps)
        if reduces:
            self._free_own(used_ps)
        else:
            self._held.append((number, used_ps))

    def _wait(self, until_ps: Fraction) -> None:
        self._now_ps = max(self._now_ps, until_ps)

    def _send(self, nbytes: int) -> Fraction:
        """The time at which the message has left the TCM."""
        costs, number = self._costs, self._sent
        self._now_ps += costs.command_ps
        start_ps = max(self._now_ps, self._link_free_ps)
        if number >= self._messages.in_ring and costs.credit_ps is not None:
            credited_ps = self._released_ps[number - self._messages.in_ring] + costs.credit_ps
            start_ps = max(start_ps, credited_ps)
        self._link_free_ps = start_ps + costs.link_ps(nbytes)
        self._arrivals_ps.append(self._link_free_ps + costs.alpha_ps)
        self._sent += 1
        return start_ps + costs.left_ps(nbytes)

    def _release_first(self) -> None:
        self._wait(self._held.popleft()[1])
        self._release()

    def _release(self) -> None:
        """Return the slots of a message; its buffer serves a later receive."""
        self._now_ps += self._costs.command_ps
        self._released_ps.append(self._now_ps)
        self._post()

    def _post(self) -> None:
        if self._unposted:
            self._unposted -= 1
            self._now_ps += self._costs.command_ps

    def _free_own(self, used_ps: Fraction) -> None:
        self._buffers_ps.append(used_ps)
        self._load()

    def _load_first(self) -> None:
        """Load the pieces of the first step, whose packets take turns on the slice: the first piece
        waits for all but one packet of each other piece.
        """
        for _ in range(min(self._messages.lag, len(self._own))):
            self._load()
        nbytes, count = self._messages.sizes[0], len(self._loaded_ps)
        packet_ps = self._costs.packet_ps(nbytes)
        first_ps = self._loaded_ps[0] + (count - 1) * (self._costs.slice_ps(nbytes) - packet_ps)
        turns_ps = (first_ps + index * packet_ps for index in range(count))
        self._loaded_ps = deque(map(max, self._loaded_ps, turns_ps))

    def _load(self) -> None:
        if self._own:
            self._wait(self._buffers_ps.popleft())
            nbytes = self._own.popleft()
            self._now_ps += self._costs.access_ps
            slice_ps = self._costs.slice_ps(nbytes)
            first_ps = self._now_ps + self._costs.load_ps(nbytes) - slice_ps
            self._slice_free_ps = max(self._slice_free_ps, first_ps) + slice_ps
            self._loaded_ps.append(self._slice_free_ps)
