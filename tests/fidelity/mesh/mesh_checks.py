"""Group e: the 4x4 mesh against BookSim 2; and the same mesh under synthetic traffic, as CSV."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.mesh.mesh_network import SIDE, MeshNetwork, MeshRouter, Traffic

REFERENCE = Path(__file__).parents[1] / "reference" / "booksim_mesh4x4_uniform.csv"
ROUTERS_FILE = REFERENCE.with_name("booksim_mesh4x4_routers.csv")
DEFAULT_LOADS = (0.1, 0.4, 0.6, 0.8, 0.95)
CYCLES, WARMUP = 30_000, 3_000
KNEE = 0.8
"""The tolerance is 2 % up to this load, and 5 % beyond it.

There queues dominate, whose length depends on the buffers of the routers."""


def reference() -> dict[float, float]:
    """Offered load -> mean packet latency in cycles, measured with BookSim 2."""
    with REFERENCE.open(encoding="utf-8", newline="") as file:
        return {
            float(row["offered_flits_per_node_cycle"]): float(row["avg_packet_latency_cycles"])
            for row in csv.DictReader(file)
        }


def loaded(file: TopologyFile, seed: int, load: float) -> list[Check]:
    """One load of the reference."""
    seen = MeshNetwork(file).run(Traffic("uniform", load, 1, seed), CYCLES, WARMUP)
    traffic = f"1-flit packets to uniform destinations, {load} flits per node and cycle"
    return [
        Check(
            id=f"e.uniform.{load}.latency",
            text=f"{traffic}: mean latency",
            formula="BookSim 2",
            expected=reference()[load],
            measured=seen.latency_cycles,
            tolerance=0.02 if load <= KNEE else 0.05,
            unit="cycles",
        ),
        Check(
            id=f"e.uniform.{load}.accepted",
            text="the same: flits accepted per node and cycle",
            formula="offered",
            expected=load,
            measured=seen.accepted,
            tolerance=0.02,
            unit="",
        ),
    ]


def unloaded(file: TopologyFile) -> list[Check]:
    """A single packet between each pair of nodes."""
    return [_unloaded(file, flits) for flits in (1, 8)]


def _unloaded(file: TopologyFile, flits: int) -> Check:
    """The largest difference from the zero-load latency of the reference router."""
    latencies = MeshNetwork(file).one_by_one(flits)
    worst = max(
        abs(took - (3 * _routers(source, target) + 1 + flits)) for source, target, took in latencies
    )
    return Check(
        id=f"e.zero-load.{flits}",
        text=f"one {flits}-flit packet at a time, all pairs of nodes: largest difference",
        formula="3 H + 1 + flits",
        expected=0,
        measured=worst,
        unit="cycles",
    )


def _routers(source: int, target: int) -> int:
    """H: the routers on the route."""
    return 1 + abs(source % SIDE - target % SIDE) + abs(source // SIDE - target // SIDE)


@dataclass(frozen=True)
class RouterRun:
    """A row of the reference with finite routers: how it is repeated, and with which tolerance.

    The longer a run, the smaller its statistical error, which is to be well below the tolerance.
    """

    router: MeshRouter
    flits: int
    cycles: int
    tolerance: float


ROUTERS = {
    "r1": RouterRun(MeshRouter("credits", 4, 4, 8), 1, 4_000, 0.03),
    "r2": RouterRun(MeshRouter("credits", 3, 8, 16), 1, 4_000, 0.03),
    "r3": RouterRun(MeshRouter("flits"), 8, 30_000, 0.02),
}
"""The routers of `ROUTERS_FILE` by the first letters of their names."""
ROUTER_LOADS = (("r1", 0.5), ("r1", 0.6), ("r2", 0.65), ("r3", 0.2))
"""Loads of the latencies that are compared without `--full`."""
NINE_TENTHS = 0.7
"""The highest load that is compared: saturation is between 0.75 and 0.8."""
STABILITY_LOADS = (0.75, 0.8)
FULL_TIMES = 5
"""Factor by which each run is longer with `--full`."""
STABILITY_CYCLES, STABILITY_WARMUP = 3_000, 300


def router_reference() -> dict[tuple[str, float], float | None]:
    """(router, offered load) -> mean latency in cycles with BookSim 2, None if unstable."""
    with ROUTERS_FILE.open(encoding="utf-8", newline="") as file:
        return {
            (row["router"][:2].lower(), float(row["offered_flits_per_node_cycle"])): (
                float(row["avg_packet_latency_cycles"]) if row["status"] == "ok" else None
            )
            for row in csv.DictReader(file)
            if row["seed"] == "1"
        }


def router_loads(*, full: bool) -> list[tuple[str, float, int]]:
    """(router, load, length of the run) of the latencies that are compared."""
    if not full:
        return [(name, load, 1) for name, load in ROUTER_LOADS]
    return [
        (name, load, FULL_TIMES) for name, load in sorted(router_reference()) if load <= NINE_TENTHS
    ]


def router_latency(
    file: TopologyFile, seed: int, name: str, load: float, times: int
) -> list[Check]:
    """The mean latency with one of the finite routers at one load.

    `times` is the length of the run in units of that of the default loads.
    """
    run = ROUTERS[name]
    cycles = times * run.cycles
    expected = router_reference()[name, load]
    assert expected is not None, "a latency is compared below saturation"
    seen = MeshNetwork(file, run.router).run(
        Traffic("uniform", load, run.flits, seed), cycles, cycles // 10
    )
    return [
        Check(
            id=f"e.{name}.{load}.latency",
            text=f"{_described(run)}, {load} flits per node and cycle: mean latency",
            formula="BookSim 2",
            expected=expected,
            measured=seen.latency_cycles,
            tolerance=run.tolerance,
            unit="cycles",
        )
    ]


def router_stability(file: TopologyFile, seed: int, name: str, load: float) -> list[Check]:
    """Whether the network accepts what is offered, as BookSim 2 does at this load."""
    run = ROUTERS[name]
    seen = MeshNetwork(file, run.router).run(
        Traffic("uniform", load, run.flits, seed),
        STABILITY_CYCLES,
        STABILITY_WARMUP,
        drains=False,
    )
    return [
        Check(
            id=f"e.{name}.{load}.stable",
            text=f"{_described(run)}, {load} flits per node and cycle: stable (1) or not (0)",
            formula="BookSim 2",
            expected=int(router_reference()[name, load] is not None),
            measured=int(seen.stable),
            unit="",
        )
    ]


def router_unloaded(file: TopologyFile, stages: int) -> list[Check]:
    """A single packet between each pair of nodes through clocked routers."""
    return [
        Check(
            id=f"e.credits.{stages}.zero-load.{flits}",
            text=f"{stages} stages, one {flits}-flit packet at a time, all pairs of nodes: "
            "largest difference",
            formula="(stages + 1) H + 1 + flits",
            expected=0,
            measured=max(
                abs(took - ((stages + 1) * _routers(source, target) + 1 + flits))
                for source, target, took in MeshNetwork(
                    file, MeshRouter("credits", stages)
                ).one_by_one(flits)
            ),
            unit="cycles",
        )
        for flits in (1, 8)
    ]


def _described(run: RouterRun) -> str:
    router = run.router
    packets = f"{run.flits}-flit packets"
    if router.flow_control == "flits":
        return f"FIFO links for flits, {packets}"
    return (
        f"routers of {router.stages} stages, {router.vcs} VCs x {router.buffer_flits} flits, "
        f"{packets}"
    )


def traffic_csv(
    file: TopologyFile, router: MeshRouter, traffics: Iterable[Traffic]
) -> Iterator[str]:
    """The lines of a CSV file: a heading, and a line for each traffic."""
    yield (
        "flow_control,router_stages,vcs,buffer_flits,pattern,flits,offered,seed,"
        "avg_latency_cycles,accepted,status"
    )
    credited = router.flow_control == "credits"
    values = (router.stages, router.vcs, router.buffer_flits) if credited else ("", "", "")
    for traffic in traffics:
        seen = MeshNetwork(file, router).run(traffic, CYCLES, WARMUP)
        status = "stable" if seen.stable else "unstable"
        fields = (
            router.flow_control,
            *values,
            traffic.pattern,
            traffic.flits,
            f"{traffic.load:g}",
            traffic.seed,
            f"{seen.latency_cycles:.4f}",
            f"{seen.accepted:.6f}",
            status,
        )
        yield ",".join(map(str, fields))
