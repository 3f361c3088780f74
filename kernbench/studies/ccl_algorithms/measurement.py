"""Measures one all-reduce of the study, on integers whose sums float16 represents exactly."""

import numpy as np

from kernbench import DPPolicy
from kernbench.benches.collective_perf.cubes import nearest_cubes
from kernbench.studies.all_reduce import run_all_reduce
from kernbench.studies.ccl_algorithms.points import AlgorithmPoint
from kernbench.studies.ccl_algorithms.rows import AlgorithmRow
from runtime.language.value import Array
from runtime.model.topology import parse_topology

SEED = 1
"""Of the data. Times do not depend on it."""
EXACT = 2048
"""All integers up to 2^11 are float16 numbers, so sums up to this value are exact in any order."""


def measure(point: AlgorithmPoint) -> AlgorithmRow:
    """Simulate one point."""
    # The same cube and spread as in `perf`, so that the selection fits what `perf` measures.
    topology = parse_topology(point.topology, "topology.yaml")
    cubes, pes = point.case.spread(nearest_cubes(topology)[:1], topology.pes_per_cube)
    # Integers: each sum is exact in any order, so every algorithm must give the same bits.
    shards = [shard(point, rank) for rank in range(point.ranks)]
    run = run_all_reduce(
        shards,
        np.stack(shards).sum(axis=0, dtype=np.float16),
        DPPolicy(cube="column_wise", pe="column_wise", cubes=cubes, num_pes=pes),
        algorithm=point.algorithm,
        topology_yaml=point.topology,
        ccl_yaml=point.ccl,
    )
    return AlgorithmRow(
        algorithm=point.algorithm,
        ranks=point.ranks,
        nbytes=point.nbytes,
        time_ps=run.time_ps,
        skew_ps=run.skew_ps,
        wrong=run.wrong,
    )


def shard(point: AlgorithmPoint, rank: int) -> Array:
    """The tensor of a rank: one row of integers, small enough that no sum exceeds `EXACT`."""
    limit = EXACT // point.ranks
    rng = np.random.default_rng([SEED, rank, point.nbytes])
    return rng.integers(-limit, limit, (1, point.case.count), endpoint=True).astype(np.float16)
