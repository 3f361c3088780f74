"""Group e: the 4x4 mesh against BookSim 2, and the same mesh under any synthetic traffic as CSV."""

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
"""Up to this load the tolerance is 2 %; beyond it, where queues dominate and depend on the buffers, 5 %."""


def reference() -> dict[float, float]:
    """Offered load -> mean packet latency in cycles, as measured on BookSim 2."""
    with REFERENCE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        float(row["offered_flits_per_node_cycle"]): float(row["avg_packet_latency_cycles"])
        for row in rows
    }


def loaded(file: TopologyFile, seed: int, load: float) -> list[Check]:
    """One load of the reference."""
    outcome = MeshNetwork(file).run(Traffic("uniform", load, 1, seed), CYCLES, WARMUP)
    tolerance = 0.02 if load <= KNEE else 0.05
    says = f"1-flit packets to uniform destinations at {load} flits a node and cycle: mean latency"
    return [
        Check(
            f"e.uniform.{load}.latency",
            says,
            "BookSim 2",
            reference()[load],
            outcome.latency_cycles,
            tolerance,
            "cycles",
        ),
        Check(
            f"e.uniform.{load}.accepted",
            "the same: flits accepted a node and cycle",
            "offered",
            load,
            outcome.accepted,
            0.02,
            "",
        ),
    ]


def unloaded(file: TopologyFile) -> list[Check]:
    """A packet alone between every pair of nodes."""
    return [_alone(file, flits) for flits in (1, 8)]


def _alone(file: TopologyFile, flits: int) -> Check:
    latencies = MeshNetwork(file).one_by_one(flits)
    worst = max(
        abs(took - (3 * _routers(source, target) + 1 + flits)) for source, target, took in latencies
    )
    says = f"{flits}-flit packets alone between all pairs of nodes: largest difference"
    return Check(f"e.zero-load.{flits}", says, "3 H + 1 + flits", 0, worst, 0, "cycles")


def _routers(source: int, target: int) -> int:
    return 1 + abs(source % SIDE - target % SIDE) + abs(source // SIDE - target // SIDE)


def traffic_csv(
    file: TopologyFile, pattern: str, loads: Sequence[float], flits: int, seed: int
) -> Iterator[str]:
    """`pattern,flits,offered,seed,avg_latency_cycles,accepted`: a heading, and a line for each load."""
    yield "pattern,flits,offered,seed,avg_latency_cycles,accepted"
    for load in loads:
        outcome = MeshNetwork(file).run(Traffic(pattern, load, flits, seed), CYCLES, WARMUP)
        yield f"{pattern},{flits},{load:g},{seed},{outcome.latency_cycles:.4f},{outcome.accepted:.6f}"
