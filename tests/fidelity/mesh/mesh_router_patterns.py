"""Group e, `e.pattern`: routers with credits under traffic that is not uniform."""

import csv

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.mesh.mesh_checks import REFERENCE
from tests.fidelity.mesh.mesh_network import MeshNetwork, MeshRouter, Traffic

PATTERNS_FILE = REFERENCE.with_name("booksim_mesh4x4_patterns.csv")
ROUTERS = {
    "r1": MeshRouter("credits", 4, 4, 8),
    "r2": MeshRouter("credits", 3, 8, 16),
    "r4": MeshRouter("credits", 4, 1, 4),
}
"""The routers of `PATTERNS_FILE` by the first letters of their names."""
LOADS = {
    "r1": {"transpose": 0.24, "bitcomp": 0.32, "neighbor": 0.32, "hotspot": 0.36},
    "r2": {"transpose": 0.24, "bitcomp": 0.32, "neighbor": 0.32, "hotspot": 0.36},
    "r4": {"transpose": 0.08, "bitcomp": 0.08, "neighbor": 0.24, "hotspot": 0.08},
}
"""The highest load of each pattern up to 0.9 of saturation, which is compared without `--full`.

So is the hot spot at `STEADY_HOTSPOT`."""
CYCLES, FULL_CYCLES, WARMUP = 15_000, 40_000, 2_000
STEADY_HOTSPOT, SEEDS = 0.34, 8
"""Beyond this load of the hot spot seeds differ by up to 9 %, before by 1 %: a mean of `SEEDS`."""
TOLERANCE = 0.03


def pattern_reference() -> dict[tuple[str, str, float], float]:
    """(router, pattern, offered load) -> mean latency in cycles with BookSim 2, where stable."""
    with PATTERNS_FILE.open(encoding="utf-8", newline="") as file:
        return {
            (
                row["router"][:2].lower(),
                row["traffic"],
                float(row["offered_flits_per_node_cycle"]),
            ): float(row["avg_packet_latency_cycles"])
            for row in csv.DictReader(file)
            if row["status"] == "ok"
        }


def pattern_loads(*, full: bool) -> list[tuple[str, str, float, int]]:
    """(router, pattern, load, cycles) of the latencies that are compared."""
    cycles = FULL_CYCLES if full else CYCLES
    return [
        (name, pattern, load, CYCLES if _is_averaged(pattern, load) else cycles)
        for name, pattern, load in sorted(pattern_reference())
        if load == LOADS[name][pattern]
        or (full and load < LOADS[name][pattern])
        or (pattern == "hotspot" and load == STEADY_HOTSPOT)
    ]


def pattern_latency(
    file: TopologyFile, seed: int, name: str, pattern: str, load: float, cycles: int
) -> list[Check]:
    """The mean latency with one router under one pattern at one load."""
    router = ROUTERS[name]
    seeds = range(seed, seed + (SEEDS if _is_averaged(pattern, load) else 1))
    runs = [
        MeshNetwork(file, router).run(Traffic(pattern, load, 1, each), cycles, WARMUP)
        for each in seeds
    ]
    of_seeds = f", mean of {SEEDS} seeds" if len(seeds) > 1 else ""
    return [
        Check(
            id=f"e.pattern.{name}.{pattern}.{load}",
            text=f"routers of {router.stages} stages, {router.vcs} VCs x {router.buffer_flits} "
            f"flits, {pattern}, {load} flits per node and cycle: mean latency{of_seeds}",
            formula="BookSim 2",
            expected=pattern_reference()[name, pattern, load],
            measured=sum(each.latency_cycles for each in runs) / len(runs),
            tolerance=TOLERANCE,
            unit="cycles",
        )
    ]


def _is_averaged(pattern: str, load: float) -> bool:
    return pattern == "hotspot" and load > STEADY_HOTSPOT
