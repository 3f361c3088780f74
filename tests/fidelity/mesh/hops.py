"""Compares the speed of the fabric with that of a plain SimPy model of the same mesh.

The plain model has a `Store` in front of every link, a process that serves it, and a process for
every packet on a wire, as in "Event latency" of SimPy's examples. Both carry the traffic of
`validate --mesh`, in alternation, so that a machine whose speed drifts favours neither. A ratio is
taken in each round; the result is their median. With `--cores` the fabric runs on the reference and
on the compiled core, each in a process of its own.

With credits a flit and a link count as a hop. Routers of two stages have the latency of the plain
model, but in place of its queues without a limit they have buffers.
"""

import argparse
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, TypeVar

import simpy

from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.compiled.choice import COMPILED, PYTHON, VARIABLE
from runtime.core.config.config_file import default_file, read_text
from runtime.core.rng import seeded
from runtime.core.wallclock import cpu_s
from tests.fidelity.mesh.mesh_network import (
    NODES,
    SIDE,
    MeshNetwork,
    MeshRouter,
    Traffic,
    destination,
    gap,
)

TARGET = 5.0
ROUTER_CYCLES, WIRE_CYCLES, FLIT_CYCLES = 2, 1, 1
AGREEMENT = 0.02
"""The largest relative difference of the mean latencies. It is not 0, because the models serve
packets that arrive in the same cycle in different orders."""

ROUTERS = {
    "unlimited": MeshRouter(),
    "credits": MeshRouter("credits", stages=ROUTER_CYCLES),
}

Steps = Generator[simpy.Event, Any, None]
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class HopRun:
    """One run of one model: `packets` generated in the measured cycles, `hops` of all packets."""

    packets: int
    latency_cycles: float
    hops: int
    cpu_s: float

    @property
    def hops_per_s(self) -> float:
        """The speed that is compared."""
        return self.hops / self.cpu_s


@dataclass
class PlainPacket:
    """A packet of the plain model, with its remaining links, the next one last."""

    links: "list[PlainLink]"
    generated: int


class PlainLink:
    """A store and a process that serves it at one flit per cycle.

    A packet reaches the next link after `cycles`.
    """

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
        """Count a packet whose head has reached its PE; its tail arrives one flit later."""
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
        """The links from PE to PE in reverse order."""
        (row, col), (to_row, to_col) = divmod(source, SIDE), divmod(target, SIDE)
        cells = [(row, across) for across in _steps(col, to_col)] + [
            (down, to_col) for down in _steps(row, to_row)[1:]
        ]
        nodes = [f"pe{source}", *(f"router{cell}" for cell in cells), f"pe{target}"]
        return [self._link(*ends) for ends in pairwise(nodes)][::-1]

    def _link(self, begin: str, end: str) -> PlainLink:
        if (begin, end) not in self._links:
            router = ROUTER_CYCLES if end.startswith("router") else 0
            self._links[begin, end] = PlainLink(self, WIRE_CYCLES + router)
        return self._links[begin, end]


def _steps(start: int, end: int) -> range:
    step = 1 if end >= start else -1
    return range(start, end + step, step)


def run_plain(traffic: Traffic, cycles: int) -> HopRun:
    """HopRun the plain SimPy model."""
    mesh = PlainMesh(cycles)
    _, took_s = _timed(lambda: mesh.run(traffic))
    return HopRun(mesh.packets, mesh.latency / mesh.packets, mesh.hops, took_s)


def run_fabric(traffic: Traffic, cycles: int, flow_control: str) -> HopRun:
    """HopRun the fabric of kernbench with a flow control of `ROUTERS`."""
    file = TopologyFile.of(read_text(default_file("topology.yaml")))
    network = MeshNetwork(file, ROUTERS[flow_control])
    outcome, took_s = _timed(lambda: network.run(traffic, cycles, warmup=0))
    return HopRun(outcome.packets, outcome.latency_cycles, network.flit_hops, took_s)


def _timed(work: Callable[[], _Result]) -> tuple[_Result, float]:
    """The result of `work` and its CPU seconds, without cyclic garbage collection, as in an LP."""
    gc.collect()
    gc.disable()
    began_s = cpu_s()
    result = work()
    took_s = cpu_s() - began_s
    gc.enable()
    return result, took_s


def compare_cores(load: float, cycles: int, rounds: int, flow_control: str) -> int:
    """Print hops per second of both cores, round by round; exit 1 if their results differ."""
    print(f"{'round':>5} {'python hops/s':>14} {'compiled hops/s':>16} {'ratio':>7}")
    ratios: list[float] = []
    latencies = set[str]()
    for number in range(rounds):
        speeds: list[float] = []
        for core in (PYTHON, COMPILED):
            code = (
                "from tests.fidelity.mesh.hops import *\n"
                f"traffic = Traffic('uniform', {load}, 1, seed=1)\n"
                f"run = run_fabric(traffic, {cycles}, {flow_control!r})\n"
                "print(run.hops_per_s, run.packets, run.latency_cycles)"
            )
            child = subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, VARIABLE: core},
                check=True,
                capture_output=True,
                text=True,
            )
            speed, _, result = child.stdout.partition(" ")
            speeds.append(float(speed))
            latencies.add(result)
        ratios.append(speeds[1] / speeds[0])
        print(f"{number + 1:>5} {speeds[0]:>14,.0f} {speeds[1]:>16,.0f} {ratios[-1]:>6.2f}x")
    print(f"median ratio {median(ratios):.2f}")
    return 0 if len(latencies) == 1 else 1


def main() -> int:
    """Print a line for each round; exit 1 if the models differ in packets or mean latency."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fidelity.mesh.hops", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--load", type=float, default=0.4, help="flits per node and cycle")
    parser.add_argument("--cycles", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", action="store_true", help="compare the cores, not with SimPy")
    parser.add_argument("--flow-control", choices=list(ROUTERS), default="unlimited")
    options = parser.parse_args()
    if options.cores:
        return compare_cores(options.load, options.cycles, options.rounds, options.flow_control)
    traffic = Traffic("uniform", options.load, 1, seed=1)
    print(f"{'round':>5} {'plain hops/s':>13} {'fabric hops/s':>13} {'ratio':>7}")
    rounds: list[tuple[HopRun, HopRun]] = []
    for number in range(options.rounds):
        reference = run_plain(traffic, options.cycles)
        fabric = run_fabric(traffic, options.cycles, options.flow_control)
        rounds.append((reference, fabric))
        ratio = fabric.hops_per_s / reference.hops_per_s
        print(
            f"{number + 1:>5} {reference.hops_per_s:>13,.0f} {fabric.hops_per_s:>13,.0f} "
            f"{ratio:>6.2f}x"
        )
    ratios = [fabric.hops_per_s / reference.hops_per_s for reference, fabric in rounds]
    reference, fabric = rounds[0]
    print(
        f"{fabric.packets:,} packets, mean latency {reference.latency_cycles:.3f} "
        f"and {fabric.latency_cycles:.3f} cycles"
    )
    print(f"median ratio {median(ratios):.2f}, target {TARGET:g}")
    same = (
        reference.packets == fabric.packets
        and abs(reference.latency_cycles / fabric.latency_cycles - 1) < AGREEMENT
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
