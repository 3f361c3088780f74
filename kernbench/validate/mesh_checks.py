"""Group e: the 4x4 mesh against BookSim 2; and the same mesh under synthetic traffic, as CSV."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.check import Check
from kernbench.validate.mesh_network import SIDE, MeshNetwork, Traffic

REFERENCE = Path(__file__).parent / "reference" / "booksim_mesh4x4_uniform.csv"
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


def traffic_csv(
    file: TopologyFile, pattern: str, loads: Sequence[float], flits: int, seed: int
) -> Iterator[str]:
    """The lines of a CSV file: a heading, and a line for each load."""
    yield "pattern,flits,offered,seed,avg_latency_cycles,accepted"
    for load in loads:
        seen = MeshNetwork(file).run(Traffic(pattern, load, flits, seed), CYCLES, WARMUP)
        results = f"{seen.latency_cycles:.4f},{seen.accepted:.6f}"
        yield f"{pattern},{flits},{load:g},{seed},{results}"
