"""Group d, and Little's law: a link of the model as a single-server queue with Poisson arrivals and constant service."""

from collections.abc import Iterator
from dataclasses import dataclass

from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.check import Check
from kernbench.validate.transfers import BareFabric
from runtime.core.rng import seeded
from sip_node.chip.fabric.packet import Packet

NBYTES = 4096
LOADS = {0.5: (100_000, 0.03), 0.8: (600_000, 0.03), 0.9: (1_200_000, 0.05)}
"""Load -> arrivals, and the tolerance of the mean wait; its standard error is a quarter of the tolerance or less."""


@dataclass(frozen=True)
class Observed:
    """One run: times in ps, `mean_in_system` is the time average seen by an observer who only counts who comes and goes."""

    service_ps: int
    mean_wait_ps: float
    mean_in_system: float
    arrivals_per_ps: float
    queued_ps: int
    busy_ps: int


class Link:
    """The link from a PE to its router, with packets that come one by one at given times."""

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

    def run(self, load: float, arrivals: int, seed: int) -> Observed:
        """`arrivals` packets at the times of a Poisson process that has so many in the time in which `load` of it is service.

        Given their number, the times of a Poisson process are uniform.
        """
        service_ps = self._server.serialisation_ps(NBYTES)
        span_ps = round(arrivals * service_ps / load)
        rng = seeded(seed, arrivals)
        self._times = iter(sorted(rng.randrange(span_ps) for _ in range(arrivals)))
        self._net.engine.at(next(self._times), self._arrive)
        self._net.run()
        total_ps, server = self._net.engine.now_ps, self._server
        return Observed(
            service_ps,
            self._wait_ps / arrivals,
            self._area / total_ps,
            arrivals / total_ps,
            server.queued_ps,
            server.busy_ps,
        )

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """The head has passed the link and what lies behind it; the packet leaves the link when its tail does."""
        engine = self._net.engine
        self._wait_ps += engine.now_ps - self.past_ps - packet.sent_ps
        engine.at(tail_ps, self._leave)

    def _arrive(self) -> None:
        self._count(1)
        self._net.send(self._pe, self._router, NBYTES, 0)
        after_ps = next(self._times, None)
        if after_ps is not None:
            self._net.engine.at(after_ps, self._arrive)

    def _leave(self) -> None:
        self._count(-1)

    def _count(self, change: int) -> None:
        now_ps = self._net.engine.now_ps
        self._area += self._inside * (now_ps - self._changed_ps)
        self._inside, self._changed_ps = self._inside + change, now_ps


def waiting(file: TopologyFile, seed: int, load: float) -> list[Check]:
    """Group d at one load: the mean wait of an M/D/1 queue, in service times."""
    arrivals, tolerance = LOADS[load]
    seen = Link(file).run(load, arrivals, seed)
    says = f"{arrivals:,} packets come at random to a link that they load to {load}"
    return [
        Check(
            f"d.md1.{load}",
            says,
            "Pollaczek-Khinchine: rho / (2 (1 - rho))",
            load / (2 * (1 - load)),
            seen.mean_wait_ps / seen.service_ps,
            tolerance,
            "service times",
        )
    ]


def little(file: TopologyFile, seed: int) -> list[Check]:
    """L from outside, lambda W from the counters of the link. The tail passes `post` behind the link; a stay has that too."""
    arrivals = 20_000
    link = Link(file)
    seen = link.run(0.8, arrivals, seed)
    stay_ps = (seen.queued_ps + seen.busy_ps) / arrivals + link.past_ps
    says = "mean number on a link at load 0.8, counted outside, against its own counters"
    expected = seen.arrivals_per_ps * stay_ps
    return [Check("f.little", says, "L = lambda W", expected, seen.mean_in_system, 1e-3, "packets")]
