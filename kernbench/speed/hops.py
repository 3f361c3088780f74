"""How fast packets hop: the fabric beside a plain SimPy model of the same mesh, with the same packets.

The plain model is what one writes with SimPy at hand: a `Store` in front of every link, a process that serves it, and a process
for every packet on a wire, as in "Event latency" of SimPy's own examples. Both carry the traffic of `validate --mesh` in
turns, so that a machine whose speed drifts does not favour one; ratios are taken round by round, and their median counts.
"""

import argparse
import gc
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, TypeVar

import simpy

from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.mesh_network import (
    FLIT_BYTES,
    NODES,
    SIDE,
    MeshNetwork,
    Traffic,
    destination,
    gap,
)
from runtime.core.config_file import default_file, read_text
from runtime.core.rng import seeded
from runtime.core.wallclock import cpu_s

TARGET = 5.0
ROUTER_CYCLES, WIRE_CYCLES, FLIT_CYCLES = 2, 1, 1
AGREEMENT = 0.02
"""Share by which the mean latencies may differ: packets that meet in the same cycle may go in another order."""

Steps = Generator[simpy.Event, Any, None]
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Run:
    """One run of one model. Hops are links passed by all packets, `packets` are those generated in the measured cycles."""

    packets: int
    latency_cycles: float
    hops: int
    cpu_s: float

    @property
    def hops_per_s(self) -> float:
        """What the benchmark is about."""
        return self.hops / self.cpu_s


@dataclass
class PlainPacket:
    """A packet of the plain model and the links that it still has before it."""

    links: "list[PlainLink]"
    generated: int


class PlainLink:
    """A Store, and a process that serves it: one flit a cycle; a packet is `cycles` on its way to the next link."""

    def __init__(self, mesh: "PlainMesh", cycles: int) -> None:
        self._mesh, self._env, self._cycles = mesh, mesh.env, cycles
        self.queue = simpy.Store(mesh.env)
        mesh.env.process(self._serve())

    def _serve(self) -> Steps:
        while True:
            packet: PlainPacket = yield self.queue.get()
            self._mesh.hops += 1
            self._env.process(self._pass_on(packet))
            yield self._env.timeout(FLIT_CYCLES)

    def _pass_on(self, packet: PlainPacket) -> Steps:
        yield self._env.timeout(self._cycles)
        if packet.links:
            packet.links.pop().queue.put(packet)
        else:
            self._mesh.arrived(packet)


class PlainMesh:
    """A 4x4 mesh with XY routing and the delays of `MeshNetwork`, for packets of one flit."""

    def __init__(self, cycles: int) -> None:
        self.env = simpy.Environment()
        self._cycles = cycles
        self.packets = self.latency = self.hops = self._missing = 0
        self._links: dict[tuple[str, str], PlainLink] = {}

    def run(self, traffic: Traffic) -> None:
        """Offer traffic until all packets of the first cycles have arrived."""
        for node in range(NODES):
            self.env.process(self._source(node, traffic))
        self.env.run()

    def arrived(self, packet: PlainPacket) -> None:
        """The head of a packet is at its PE; its tail comes a flit later."""
        if packet.generated < self._cycles:
            self._missing -= 1
            self.packets += 1
            self.latency += self.env.now + FLIT_CYCLES - packet.generated

    def _source(self, node: int, traffic: Traffic) -> Steps:
        rng = seeded(traffic.seed, node)
        cycle = -1
        while True:
            cycle += gap(rng, traffic.load)
            yield self.env.timeout(cycle - self.env.now)
            if cycle >= self._cycles and not self._missing:
                return
            self._missing += cycle < self._cycles
            links = self._route(node, destination(traffic.pattern, node, rng))
            links.pop().queue.put(PlainPacket(links, cycle))

    def _route(self, source: int, target: int) -> list[PlainLink]:
        """The links from PE to PE, the last one first."""
        (row, col), (to_row, to_col) = divmod(source, SIDE), divmod(target, SIDE)
        cells = [(row, across) for across in _steps(col, to_col)] + [
            (down, to_col) for down in _steps(row, to_row)[1:]
        ]
        places = [f"pe{source}", *(f"router{cell}" for cell in cells), f"pe{target}"]
        return [self._link(*ends) for ends in pairwise(places)][::-1]

    def _link(self, begin: str, end: str) -> PlainLink:
        if (begin, end) not in self._links:
            router = ROUTER_CYCLES if end.startswith("router") else 0
            self._links[begin, end] = PlainLink(self, WIRE_CYCLES + router)
        return self._links[begin, end]


def _steps(start: int, end: int) -> range:
    step = 1 if end >= start else -1
    return range(start, end + step, step)


def plain(traffic: Traffic, cycles: int) -> Run:
    """The plain model."""
    mesh = PlainMesh(cycles)
    _, took_s = _timed(lambda: mesh.run(traffic))
    return Run(mesh.packets, mesh.latency / mesh.packets, mesh.hops, took_s)


def ours(traffic: Traffic, cycles: int) -> Run:
    """The fabric of the product."""
    network = MeshNetwork(TopologyFile.of(read_text(default_file("topology.yaml"))))
    outcome, took_s = _timed(lambda: network.run(traffic, cycles, warmup=0))
    hops = sum(server.nbytes for server in network.fabric.busiest()) // FLIT_BYTES
    return Run(outcome.packets, outcome.latency_cycles, hops, took_s)


def _timed(work: Callable[[], _Result]) -> tuple[_Result, float]:
    """What `work` gives and its CPU seconds, without the collector of cycles: an LP runs without it, too."""
    gc.collect()
    gc.disable()
    began_s = cpu_s()
    result = work()
    took_s = cpu_s() - began_s
    gc.enable()
    return result, took_s


def main() -> int:
    """Print a line a round; exit 1 if the two models do not carry the same packets in the same time."""
    parser = argparse.ArgumentParser(
        prog="python -m kernbench.speed.hops", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--load", type=float, default=0.4, help="flits a node and cycle")
    parser.add_argument("--cycles", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    traffic = Traffic("uniform", options.load, 1, seed=1)
    print(f"{'round':>5} {'plain hops/s':>13} {'ours hops/s':>12} {'ratio':>7}")
    rounds: list[tuple[Run, Run]] = []
    for number in range(options.rounds):
        theirs, mine = plain(traffic, options.cycles), ours(traffic, options.cycles)
        rounds.append((theirs, mine))
        ratio = mine.hops_per_s / theirs.hops_per_s
        print(
            f"{number + 1:>5} {theirs.hops_per_s:>13,.0f} {mine.hops_per_s:>12,.0f} {ratio:>6.2f}x"
        )
    ratios = [mine.hops_per_s / theirs.hops_per_s for theirs, mine in rounds]
    theirs, mine = rounds[0]
    print(
        f"{mine.packets:,} packets, mean latency {theirs.latency_cycles:.3f} and {mine.latency_cycles:.3f} cycles"
    )
    print(f"median ratio {median(ratios):.2f}, target {TARGET:g}")
    same = (
        theirs.packets == mine.packets
        and abs(theirs.latency_cycles / mine.latency_cycles - 1) < AGREEMENT
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
