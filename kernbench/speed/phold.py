"""PHOLD (Fujimoto 1990): the benchmark of parallel event simulation, on the loop of `pdes`.

A fixed number of jobs hop between entities. At each arrival, the random stream of the entity gives
a delay, at least the lookahead, and the next entity. Since a stream belongs to an entity and not to
an LP, every distribution of the entities over LPs gives the same run and the same digest.

`python -m kernbench.speed.phold --lps 2` runs it in one process and in two, and prints the cost of
synchronisation. The ceiling is as much work in two processes that exchange nothing: what this
machine can gain at most. What the lookahead allows of it is less (`phold_balance.py`).
`--window-events 10 --event-us 10` gives every process 100 us of work in a lookahead.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import heappop, heappush
from statistics import median
from struct import Struct

from runtime.core.rng import seeded
from runtime.core.simtime import NEVER_PS, PS_PER_NS
from runtime.core.wallclock import now_s
from runtime.wire.frames import Message
from sip_node.pdes.loop import LogicalProcess, LoopStatistics
from sip_node.pdes.promises import SendBound
from sip_node.pdes.sync import Sync
from sip_node.pdes.transport import Transport

_RECORD = Struct("<qqq")
_DIGESTS = 5_000
_SAMPLES = 5


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

    def run_before(self, bound_ps: int) -> int:
        """Execute the arrivals before `bound_ps`."""
        executed = 0
        while self.next_ps() < bound_ps:
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


def work_of(event_us: float) -> int:
    """The number of digests that take `event_us` on this machine, measured now."""
    digest, fastest_s = blake2b(digest_size=16), float("inf")
    # The fastest of several: other programs only make it slower.
    for _ in range(_SAMPLES):
        begin_s = now_s()
        for _ in range(_DIGESTS):
            digest.hexdigest()
        fastest_s = min(fastest_s, now_s() - begin_s)
    return round(event_us * 1e-6 * _DIGESTS / fastest_s)


def jobs_of(window_events: float, arguments: argparse.Namespace) -> int:
    """Jobs per entity for `window_events` events of each process in a lookahead, at least one.

    A hop takes the lookahead and the mean on average, and a job causes one event a hop.
    """
    per_job = arguments.lookahead_ns / (arguments.lookahead_ns + arguments.mean_ns)
    return max(1, round(window_events * arguments.lps / (arguments.entities * per_job)))


def report(title: str, result: PholdResult, alone: PholdResult) -> str:
    """One line: throughput, its ratio to one process, the synchronisation, and the digest."""
    loops = [lp.statistics for lp in result.lps]
    blocked = sum(loop.blocked_s for loop in loops) / sum(lp.wall_s for lp in result.lps)
    ratio = result.events_per_s / alone.events_per_s
    return (
        f"{title:16}  {result.events_per_s:10,.0f} events/s  {ratio:5.2f}x  "
        f"{sum(lp.cpu_s for lp in result.lps):6.2f} s of CPU  "
        f"{sum(loop.rounds for loop in loops):8,} rounds  "
        f"{sum(loop.messages for loop in loops):9,} messages  "
        f"{sum(loop.null_messages for loop in loops):7,} null messages  "
        f"{blocked:4.0%} blocked  digest {result.digest}"
    )


def arguments_of(program: str, description: str) -> argparse.Namespace:
    """The parameters from the command line of `program`, which ends if one is wrong."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--lps", type=int, default=2, help="processes to compare with one")
    parser.add_argument("--entities", type=int, default=64)
    jobs = parser.add_mutually_exclusive_group()
    jobs.add_argument("--jobs", type=int, default=8, help="jobs that start at each entity")
    jobs.add_argument(
        "--window-events", type=float, help="set --jobs: events of a process in a lookahead"
    )
    parser.add_argument("--lookahead-ns", type=int, default=16, help="least time of a hop")
    parser.add_argument(
        "--mean-ns", type=int, default=16, help="mean of the exponential time added to it"
    )
    parser.add_argument(
        "--spread", type=float, default=0.2, help="probability that a job leaves its entity"
    )
    parser.add_argument("--end-ns", type=int, default=10_000, help="simulated time")
    work = parser.add_mutually_exclusive_group()
    work.add_argument(
        "--work", type=int, default=0, help="digests computed per event, to make events cost more"
    )
    work.add_argument(
        "--event-us", type=float, help="set --work: wall time of an event's work, calibrated here"
    )
    parser.add_argument("--rounds", type=int, default=1, help="repetitions; prints medians")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not 1 <= arguments.lps <= arguments.entities:
        parser.error(
            f"--lps {arguments.lps}: between 1 and the number of entities, {arguments.entities}"
        )
    if arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: at least 1")
    return arguments


def workload_of(given: argparse.Namespace) -> Workload:
    """The workload that the parameters describe; `--event-us` is calibrated now."""
    return Workload(
        entities=given.entities,
        jobs=given.jobs if given.window_events is None else jobs_of(given.window_events, given),
        lookahead_ps=given.lookahead_ns * PS_PER_NS,
        mean_ps=given.mean_ns * PS_PER_NS,
        spread=given.spread,
        end_ps=given.end_ns * PS_PER_NS,
        work=given.work if given.event_us is None else work_of(given.event_us),
        seed=given.seed,
    )


def main() -> int:
    """Run the workload with one LP and with `--lps`; 1 if the digests differ."""
    # Imported here: the processes import this module for their model.
    from kernbench.speed.phold_balance import balance
    from kernbench.speed.phold_processes import run_apart, run_processes

    given = arguments_of(
        "kernbench.speed.phold",
        "PHOLD on one process and on several, and as much work without synchronisation",
    )
    workload = workload_of(given)
    print(f"{workload.entities} entities, {workload.jobs} jobs each, {workload.work} digests a job")
    ceilings, digests = list[float](), set[str]()
    for _ in range(given.rounds):
        alone = run_processes(workload, 1)
        print(report("1 LP", alone, alone))
        apart = run_apart(workload, given.lps)
        print(report(f"{given.lps} apart (ceiling)", apart, alone))
        split = run_processes(workload, given.lps)
        print(report(f"{given.lps} LPs", split, alone))
        ceilings.append(split.events_per_s / apart.events_per_s)
        digests |= {alone.digest, split.digest}
    # Before the last line, which `make bench` reads.
    print(f"the lookahead allows {balance(workload, given.lps):.2f} of the ceiling")
    print(f"{given.lps} LPs / ceiling: {median(ceilings):.2f}")
    return int(len(digests) > 1)


if __name__ == "__main__":
    raise SystemExit(main())
