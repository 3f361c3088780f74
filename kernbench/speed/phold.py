"""PHOLD (Fujimoto 1990): the benchmark of parallel event simulation, on the loop of `pdes`.

A fixed number of jobs hop between entities. At each arrival, the random stream of the entity gives
a delay, at least the lookahead, and the next entity. Since a stream belongs to an entity and not to
an LP, every distribution of the entities over LPs gives the same run and the same digest.

`python -m kernbench.speed.phold --lps 2` runs it in one process and in two, and prints the cost of
synchronisation.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from multiprocessing import get_context
from multiprocessing.connection import Connection
from struct import Struct

from runtime.core.rng import fresh_run_id, seeded
from runtime.core.simtime import NEVER_PS, PS_PER_NS
from runtime.core.wallclock import now_s
from runtime.wire.codec import PeerDecoder
from runtime.wire.frames import Message
from sip_node.pdes.loop import LogicalProcess, LoopStatistics
from sip_node.pdes.promises import SendBound
from sip_node.pdes.sync import Sync
from sip_node.pdes.transport import Transport
from sip_node.pdes.transport_zmq import ZmqTransport

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
        self._events = [(0, entity, entity, job) for entity in mine for job in range(workload.jobs)]
        heapify(self._events)

    def next_ps(self) -> int:
        """The earliest arrival."""
        return self._events[0][0] if self._events else NEVER_PS

    def run_before(self, bound_ps: int) -> int:
        """Execute the arrivals before `bound_ps`."""
        executed = 0
        while self.next_ps() < bound_ps:
            self._arrive(*heappop(self._events))
            executed += 1
        return executed

    def deliver(self, message: Message) -> None:
        """An arrival from another LP."""
        heappush(self._events, (message.time_ps, message.target, message.source, message.seq))

    def earliest_sends(self, base_ps: int) -> Iterator[SendBound]:
        """An arrival sends at its own time, so the bound is that of the next event."""
        return (SendBound(peer, 0, base_ps) for peer in range(self._lps) if peer != self._lp)

    def digests(self) -> dict[int, str]:
        """Entity -> a hash of all its arrivals in order."""
        return {entity: digest.hexdigest() for entity, digest in self._hashes.items()}

    def _arrive(self, time_ps: int, entity: int, source: int, seq: int) -> None:
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

    def _send(self, message: Message) -> None:
        peer = self._workload.lp_of(message.target, self._lps)
        if peer == self._lp:
            self.deliver(message)
        else:
            self._post(peer, message)


@dataclass(frozen=True)
class LpResult:
    """The result of one LP; `wall_s` counts from the common start."""

    digests: dict[int, str]
    statistics: LoopStatistics
    wall_s: float


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


def run_processes(workload: Workload, lps: int) -> PholdResult:
    """Run in `lps` processes over ZeroMQ ipc. The death of one raises `EOFError`."""
    context = get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="phold-") as directory:
        endpoints = {lp: f"ipc://{directory}/lp{lp}" for lp in range(lps)}
        pipes = [context.Pipe() for _ in range(lps)]
        run_id = fresh_run_id()
        processes = [
            context.Process(
                target=_child, args=(workload, lp, endpoints, run_id, pipes[lp][1]), daemon=True
            )
            for lp in range(lps)
        ]
        try:
            for process, (_, theirs) in zip(processes, pipes, strict=True):
                process.start()
                # With the only write end in the child, its death ends the pipe.
                theirs.close()
            # Every process is ready before the first one starts: start-up is not measured.
            for ours, _ in pipes:
                ours.recv()
            for ours, _ in pipes:
                ours.send("start")
            return PholdResult(tuple(ours.recv() for ours, _ in pipes))
        finally:
            for process, (ours, _) in zip(processes, pipes, strict=True):
                ours.close()
                process.join(timeout=5)
                process.terminate()


def _child(
    workload: Workload, lp: int, endpoints: Mapping[int, str], run_id: str, pipe: Connection
) -> None:
    transport = ZmqTransport(lp, run_id, endpoints[lp])
    lp_of = [workload.lp_of(entity, len(endpoints)) for entity in range(workload.entities)]
    transport.connect(
        {peer: endpoint for peer, endpoint in endpoints.items() if peer != lp},
        PeerDecoder(run_id, lp, lp_of),
    )
    loop, model = logical_process(workload, lp, len(endpoints), transport)
    pipe.send("ready")
    pipe.recv()
    begin_s = now_s()
    statistics = loop.run()
    pipe.send(LpResult(model.digests(), statistics, now_s() - begin_s))
    transport.close()


def report(lps: int, result: PholdResult, alone: PholdResult) -> str:
    """One line: throughput, its ratio to one process, the synchronisation, and the digest."""
    loops = [lp.statistics for lp in result.lps]
    blocked = sum(loop.blocked_s for loop in loops) / sum(lp.wall_s for lp in result.lps)
    ratio = result.events_per_s / alone.events_per_s
    return (
        f"{lps:3} LPs  {result.events_per_s:10,.0f} events/s  {ratio:5.2f}x  "
        f"{sum(loop.rounds for loop in loops):8,} rounds  "
        f"{sum(loop.messages for loop in loops):9,} messages  "
        f"{sum(loop.null_messages for loop in loops):7,} null messages  "
        f"{blocked:4.0%} blocked  digest {result.digest}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m kernbench.speed.phold", description="PHOLD on one process and on several"
    )
    parser.add_argument("--lps", type=int, default=2, help="processes to compare with one")
    parser.add_argument("--entities", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=8, help="jobs that start at each entity")
    parser.add_argument("--lookahead-ns", type=int, default=16, help="least time of a hop")
    parser.add_argument(
        "--mean-ns", type=int, default=16, help="mean of the exponential time added to it"
    )
    parser.add_argument(
        "--spread", type=float, default=0.2, help="probability that a job leaves its entity"
    )
    parser.add_argument("--end-ns", type=int, default=10_000, help="simulated time")
    parser.add_argument(
        "--work", type=int, default=0, help="digests computed per event, to make events cost more"
    )
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not 1 <= arguments.lps <= arguments.entities:
        parser.error(
            f"--lps {arguments.lps}: between 1 and the number of entities, {arguments.entities}"
        )
    return arguments


def main() -> int:
    """Run the workload with one LP and with `--lps`; 1 if the digests differ."""
    arguments = _arguments()
    workload = Workload(
        entities=arguments.entities,
        jobs=arguments.jobs,
        lookahead_ps=arguments.lookahead_ns * PS_PER_NS,
        mean_ps=arguments.mean_ns * PS_PER_NS,
        spread=arguments.spread,
        end_ps=arguments.end_ns * PS_PER_NS,
        work=arguments.work,
        seed=arguments.seed,
    )
    alone = run_processes(workload, 1)
    print(report(1, alone, alone))
    split = run_processes(workload, arguments.lps)
    print(report(arguments.lps, split, alone))
    return int(split.digest != alone.digest)


if __name__ == "__main__":
    raise SystemExit(main())
