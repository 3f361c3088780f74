"""Group d and Little's law: a link as a single-server queue, Poisson arrivals, constant service.

The wait of each packet follows from the arrival times alone (Lindley's recursion), to the
picosecond. The mean wait of an M/D/1 queue at load rho, in service times, is rho / (2 (1 - rho))
(Pollaczek-Khinchine), and a packet waits with probability rho, the share of the time in which the
link is busy (Poisson arrivals see time averages).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.transfers.transfers import BareFabric
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import PE_GBS, RouteEnd
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.rng import seeded
from sip_node.chip.fabric.packet import Packet
from tests.fidelity.theory.fifo import waits_ps

NBYTES = 4096
LOADS = {0.2: (100_000, 0.04), 0.5: (100_000, 0.03), 0.8: (150_000, 0.06)}
"""Number of arrivals and tolerance of the mean wait, by load.

The standard error of the mean wait is less than a third of the tolerance."""
FULL_LOADS = LOADS | {0.8: (600_000, 0.03), 0.9: (1_200_000, 0.05)}
SHARE_TOLERANCE = 0.025
"""Tolerance of the share of packets that wait; its standard error is below 1 % at all loads."""


@dataclass(frozen=True)
class QueueStatistics:
    """One run, times in ps.

    `waits_ps` are the waits of the packets in the order of their arrival at `arrivals_ps`.
    `mean_in_system` is the time average of an observer that counts only arrivals and departures.
    """

    service_ps: int
    arrivals_ps: list[int]
    waits_ps: list[int]
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
        # What a packet takes is derived, and not read from the link that is checked.
        hop = FloorPlan(file).route(RouteEnd("pe", 0, 0, 0), RouteEnd("sram", 0, 0))[:1]
        self._service_ps = transfer_ps(NBYTES, file.number(PE_GBS))
        self._server, self.past_ps = server, RouteTimes(file).latency_ps(hop)
        self._times: Iterator[int] = iter(())
        self._waits_ps: list[int] = []
        self._area = self._inside = self._changed_ps = 0

    def run(self, load: float, arrivals: int, seed: int) -> QueueStatistics:
        """Serve `arrivals` packets of a Poisson process with a rate of `load` per service time.

        Given their number, the arrival times of a Poisson process are uniformly distributed.
        """
        service_ps = self._service_ps
        # S. Ross, Stochastic Processes, 2nd edition, 1996, section 2.3.
        span_ps = round(arrivals * service_ps / load)
        rng = seeded(seed, arrivals)
        # Integer times can coincide; the engine keeps the order of equal ones.
        times_ps = sorted(rng.randrange(span_ps) for _ in range(arrivals))
        self._times = iter(times_ps)
        self._net.engine.at(next(self._times), self._arrive)
        self._net.run()
        total_ps = self._net.engine.now_ps
        return QueueStatistics(
            service_ps=service_ps,
            arrivals_ps=times_ps,
            waits_ps=self._waits_ps,
            mean_in_system=self._area / total_ps,
            arrivals_per_ps=arrivals / total_ps,
            queued_ps=self._server.queued_ps,
            busy_ps=self._server.busy_ps,
        )

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Called when the head has passed the link and the delay behind it."""
        engine = self._net.engine
        # A FIFO link: heads pass it in the order of their arrival.
        self._waits_ps.append(engine.now_ps - self.past_ps - packet.transfer.sent_ps)
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


def waiting(
    file: TopologyFile, seed: int, load: float, arrivals: int, tolerance: float
) -> list[Check]:
    """Group d at one load: each wait, the mean wait in service times, the share that waits."""
    seen = LoadedLink(file).run(load, arrivals, seed)
    expected_ps = waits_ps(seen.arrivals_ps, seen.service_ps)
    pairs = zip(expected_ps, seen.waits_ps, strict=True)
    text = f"{arrivals:,} packets arrive at random at a link, load {load}"
    return [
        Check(
            id=f"d.{load}.wait",
            text=f"{text}: packets whose wait is another",
            formula="Lindley: max(wait + service - time to the next arrival, 0)",
            expected=0,
            measured=sum(expected != measured for expected, measured in pairs),
            unit="packets",
        ),
        Check(
            id=f"d.{load}.md1",
            text=f"{text}: mean wait",
            formula="Pollaczek-Khinchine: rho / (2 (1 - rho))",
            expected=load / (2 * (1 - load)),
            measured=sum(seen.waits_ps) / arrivals / seen.service_ps,
            tolerance=tolerance,
            unit="service times",
        ),
        Check(
            id=f"d.{load}.share",
            text=f"{text}: share that waits",
            formula="rho (Poisson arrivals see time averages)",
            expected=load,
            measured=sum(wait_ps > 0 for wait_ps in seen.waits_ps) / arrivals,
            tolerance=SHARE_TOLERANCE,
            unit="",
        ),
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
