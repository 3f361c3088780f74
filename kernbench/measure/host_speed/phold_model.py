"""The model of PHOLD (Fujimoto 1990), the benchmark of parallel event simulation.

A fixed number of jobs hop between entities. At each arrival, the random stream of the entity gives
a delay, at least the lookahead, and the next entity. Since a stream belongs to an entity and not to
an LP, every distribution of the entities over LPs gives the same run and the same digest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import heappop, heappush
from struct import Struct
from sys import maxsize

from runtime.core.rng import seeded
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Message
from sip_node.pdes.loop import LogicalProcess, LoopStatistics
from sip_node.pdes.promises import SendBound
from sip_node.pdes.sync import Sync
from sip_node.pdes.transport import Transport

_RECORD = Struct("<qqq")


@dataclass(frozen=True)
class Workload:
    """The parameters: `jobs` start at each of `entities`, and hop until `end_ps`.

    A hop takes `lookahead_ps` plus an exponentially distributed time of mean `mean_ps`. A job moves
    to a random entity with probability `spread`, otherwise it stays. `work` is the number of
    digests computed for each event, in place of the cost of a model.
    """

    entities: int
    jobs: int
    lookahead_ps: int
    mean_ps: int
    spread: float
    end_ps: int
    work: int
    seed: int

    def lp_of(self, entity: int, lps: int) -> int:
        """The LP of an entity: consecutive entities form blocks of nearly equal size."""
        return entity * lps // self.entities


class Phold:
    """The entities of one LP: a heap of arrivals `(time, entity, source, seq)`."""

    def __init__(
        self, workload: Workload, lp: int, lps: int, post: Callable[[int, Message], None]
    ) -> None:
        self._workload, self._lp, self._lps, self._post = workload, lp, lps, post
        mine = [entity for entity in range(workload.entities) if workload.lp_of(entity, lps) == lp]
        self._streams = {entity: seeded(workload.seed, entity) for entity in mine}
        self._hashes = {entity: blake2b(digest_size=16) for entity in mine}
        self._hops = dict.fromkeys(mine, workload.jobs)
        self._events = list[tuple[int, int, int, int]]()
        for entity in mine:
            for job in range(workload.jobs):
                self.deliver(Message(0, entity, entity, job))

    def next_ps(self) -> int:
        """The earliest arrival."""
        return self._events[0][0] if self._events else NEVER_PS

    def run_before(self, bound_ps: int, at_most: int = maxsize) -> int:
        """Execute the arrivals before `bound_ps`, `at_most` of them."""
        executed = 0
        while self.next_ps() < bound_ps and executed < at_most:
            self.arrive(*heappop(self._events))
            executed += 1
        return executed

    def arrive(self, time_ps: int, entity: int, source: int, seq: int) -> None:
        """Execute an arrival: the work of the event, then the next hop of the job."""
        workload = self._workload
        # Arrivals of an entity are hashed in their order: another order changes the digest.
        self._hashes[entity].update(_RECORD.pack(time_ps, source, seq))
        for _ in range(workload.work):
            self._hashes[entity].hexdigest()
        stream = self._streams[entity]
        # The lookahead is the least delay; without it LPs could not run concurrently.
        arrival_ps = time_ps + workload.lookahead_ps + int(stream.expovariate(1 / workload.mean_ps))
        target = (
            int(stream.random() * workload.entities)
            if stream.random() < workload.spread
            else entity
        )
        # A number for each hop makes the order of simultaneous arrivals total.
        self._hops[entity] += 1
        if arrival_ps < workload.end_ps:
            self._send(Message(arrival_ps, entity, target, self._hops[entity]))

    def deliver(self, message: Message) -> None:
        """Add an arrival: a job at the start, or one sent by this LP or by another."""
        heappush(self._events, (message.time_ps, message.target, message.source, message.seq))

    def earliest_sends(self, base_ps: int) -> Iterator[SendBound]:
        """An arrival sends at its own time, so the bound is that of the next event."""
        return (SendBound(peer, 0, base_ps) for peer in range(self._lps) if peer != self._lp)

    def digests(self) -> dict[int, str]:
        """Entity -> a hash of all its arrivals in order."""
        return {entity: digest.hexdigest() for entity, digest in self._hashes.items()}

    def _send(self, message: Message) -> None:
        peer = self._workload.lp_of(message.target, self._lps)
        if peer == self._lp:
            self.deliver(message)
        else:
            self._post(peer, message)


@dataclass(frozen=True)
class LpResult:
    """The result of one LP; `wall_s` counts from the common start, `cpu_s` is processor time."""

    digests: dict[int, str]
    statistics: LoopStatistics
    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class PholdResult:
    """A whole run, LP by LP."""

    lps: tuple[LpResult, ...]

    @property
    def digest(self) -> str:
        """Equal for every split of the same workload."""
        digests = {entity: digest for lp in self.lps for entity, digest in lp.digests.items()}
        return blake2b(
            "".join(digests[entity] for entity in sorted(digests)).encode(), digest_size=8
        ).hexdigest()

    @property
    def events(self) -> int:
        """Arrivals executed."""
        return sum(lp.statistics.events for lp in self.lps)

    @property
    def events_per_s(self) -> float:
        """Arrivals of all LPs per second of wall time of the slowest one."""
        return self.events / max(lp.wall_s for lp in self.lps)


def logical_process(
    workload: Workload, lp: int, lps: int, transport: Transport | None
) -> tuple[LogicalProcess, Phold]:
    """The loop of LP `lp`, with a channel from and to every other, and its model."""
    lookaheads = {peer: workload.lookahead_ps for peer in range(lps) if peer != lp}
    sync = Sync(lp, lps, lookaheads, lookaheads)
    model = Phold(workload, lp, lps, sync.post)
    return LogicalProcess(sync, model, transport), model


def parts_of(workload: Workload, lps: int) -> list[Workload]:
    """A workload of its own for each LP, with the entities that the LP has: nothing to exchange."""
    counts = [0] * lps
    for entity in range(workload.entities):
        counts[workload.lp_of(entity, lps)] += 1
    return [replace(workload, entities=count) for count in counts]
