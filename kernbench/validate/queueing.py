"""Group d and Little's law: a link as a single-server queue, Poisson arrivals, constant service.

The mean wait of an M/D/1 queue at load rho, in service times, is rho / (2 (1 - rho))
(Pollaczek-Khinchine).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.check import Check
from kernbench.validate.transfers import BareFabric
from runtime.core.rng import seeded
from sip_node.chip.fabric.packet import Packet

NBYTES = 4096
LOADS = {0.5: (100_000, 0.03), 0.8: (600_000, 0.03), 0.9: (1_200_000, 0.05)}
"""By load: number of arrivals, tolerance of the mean wait.

The standard error of the mean wait is at most a quarter of the tolerance."""


@dataclass(frozen=True)
class QueueStatistics:
    """One run, times in ps.

    `mean_in_system` is the time average of an observer that counts only arrivals and departures.
    """

    service_ps: int
    mean_wait_ps: float
    mean_in_system: float
    arrivals_per_ps: float
    queued_ps: int
    busy_ps: int


class LoadedLink:
    """The link from a PE to its router, with packets that are sent at given times."""

    def __init__(self, file: TopologyFile) -> None:
        self._net = BareFabric(file)
        graph = self._net.graph
        self._pe = graph.pe(0, 0)
        self._router = self._net.routes.route(self._pe, graph.sram(0)).nodes[1]
        self._net.fabric.attach(self._router, self)
        [stage] = self._net.routes.route(self._pe, self._router).stages
        server = self._net.fabric.servers[stage.link]
        assert server is not None
        self._server, self.past_ps = server, stage.post_ps
        self._times: Iterator[int] = iter(())
        self._wait_ps = self._area = self._inside = self._changed_ps = 0

    def run(self, load: float, arrivals: int, seed: int) -> QueueStatistics:
        """Serve `arrivals` packets of a Poisson process with a rate of `load` per service time.

        Given their number, the arrival times of a Poisson process are uniformly distributed.
        """
        service_ps = self._server.serialisation_ps(NBYTES)
        span_ps = round(arrivals * service_ps / load)
        rng = seeded(seed, arrivals)
        # Integer times can coincide; the engine keeps the order of equal ones.
        self._times = iter(sorted(rng.randrange(span_ps) for _ in range(arrivals)))
        self._net.engine.at(next(self._times), self._arrive)
        self._net.run()
        total_ps = self._net.engine.now_ps
        return QueueStatistics(
            service_ps=service_ps,
            mean_wait_ps=self._wait_ps / arrivals,
            mean_in_system=self._area / total_ps,
            arrivals_per_ps=arrivals / total_ps,
            queued_ps=self._server.queued_ps,
            busy_ps=self._server.busy_ps,
        )

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Called when the head has passed the link and the delay behind it."""
        engine = self._net.engine
        self._wait_ps += engine.now_ps - self.past_ps - packet.sent_ps
        engine.at(tail_ps, self._leave)

    def _arrive(self) -> None:
        self._count(1)
        self._net.send(self._pe, self._router, NBYTES, 0)
        # One arrival schedules the next: a million events at once would only slow the calendar.
        after_ps = next(self._times, None)
        if after_ps is not None:
            self._net.engine.at(after_ps, self._arrive)

    def _leave(self) -> None:
        self._count(-1)

    def _count(self, change: int) -> None:
        """Integrate the number of packets in the system over time."""
        now_ps = self._net.engine.now_ps
        self._area += self._inside * (now_ps - self._changed_ps)
        self._inside, self._changed_ps = self._inside + change, now_ps


def waiting(file: TopologyFile, seed: int, load: float) -> list[Check]:
    """Group d at one load: the mean wait in service times."""
    arrivals, tolerance = LOADS[load]
    seen = LoadedLink(file).run(load, arrivals, seed)
    return [
        Check(
            id=f"d.md1.{load}",
            text=f"{arrivals:,} packets arrive at random at a link, load {load}: mean wait",
            formula="Pollaczek-Khinchine: rho / (2 (1 - rho))",
            expected=load / (2 * (1 - load)),
            measured=seen.mean_wait_ps / seen.service_ps,
            tolerance=tolerance,
            unit="service times",
        )
    ]


def little(file: TopologyFile, seed: int) -> list[Check]:
    """L = lambda W: L counted by an outside observer, W from the counters of the link.

    A packet counts until its tail has passed the delay behind the link: W includes it.
    """
    arrivals = 20_000
    link = LoadedLink(file)
    seen = link.run(0.8, arrivals, seed)
    stay_ps = (seen.queued_ps + seen.busy_ps) / arrivals + link.past_ps
    return [
        Check(
            id="f.little",
            text="mean number on a link at load 0.8: observed, against the link's own counters",
            formula="L = lambda W",
            expected=seen.arrivals_per_ps * stay_ps,
            measured=seen.mean_in_system,
            tolerance=1e-3,
            unit="packets",
        )
    ]
