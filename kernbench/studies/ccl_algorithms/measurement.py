"""Measures one call of the study, on integers whose sums float16 represents exactly."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.benches.collective_perf.calls import Buffers, call
from kernbench.benches.collective_perf.collective import PerfCase
from kernbench.benches.collective_perf.cubes import nearest_cubes
from kernbench.benches.collective_perf.values import origin_of
from kernbench.simulation import simulate
from kernbench.studies.all_reduce import kernel_span
from kernbench.studies.ccl_algorithms.rows import AlgorithmPoint, AlgorithmRow
from runtime.core.trace import OpRecord
from runtime.language.value import Array
from runtime.model.topology import parse_topology

SEED = 1
"""Seed of the data; times do not depend on it."""
EXACT = 2048
"""All integers up to 2^11 are float16 numbers, so sums up to this value are exact in any order."""


class CallRun(NamedTuple):
    """Times as `kernel_span` defines them, and the wrong elements of all ranks, 0 without data."""

    time_ps: int
    skew_ps: int
    wrong: int


def measure(point: AlgorithmPoint) -> AlgorithmRow:
    """Simulate one point."""
    # The same cubes and spread as in `perf`, so that the selection fits what `perf` measures.
    topology = parse_topology(point.topology, "topology.yaml")
    cubes, pes = point.case.spread(nearest_cubes(topology)[: point.cubes], topology.pes_per_cube)
    run = run_call(point, cubes, pes, has_data=True)
    return AlgorithmRow(
        collective=point.collective,
        algorithm=point.algorithm,
        ranks=point.ranks,
        nbytes=point.nbytes,
        time_ps=run.time_ps,
        skew_ps=run.skew_ps,
        wrong=run.wrong,
        grid=point.grid,
        cubes=point.cubes,
        held_out=point.held_out,
    )


def run_call(point: AlgorithmPoint, cubes: Sequence[int], pes: int, *, has_data: bool) -> CallRun:
    """Simulate the call of a point on `pes` PEs of each of `cubes`, and check it if it has data.

    The ranks do not meet before the call, so all kernels start together.
    """
    policy = DPPolicy(cube="column_wise", pe="column_wise", cubes=tuple(cubes), num_pes=pes)
    case = point.case
    # Integers: each sum is exact in any order, so every algorithm must give the same bits.
    inputs = [shard(point, rank) for rank in range(point.ranks)] if has_data else []

    def main(rank: int) -> int:
        torch.distributed.init_process_group("ahbm", algorithm=point.algorithm)
        source = (
            torch.from_numpy(inputs[rank], dp=policy)
            if inputs
            else torch.empty(case.input_rows, case.count, dtype=torch.float16, dp=policy)
        )
        target = torch.zeros(case.output_rows, case.count, dtype=torch.float16, dp=policy)
        buffers = Buffers(source, source if case.collective.in_place else target)
        call(case, buffers)()
        if not inputs:
            torch.ahbm.synchronize()
            return 0
        # `numpy` waits for the collective and reads all shards back.
        return int(np.count_nonzero(buffers.target.numpy() != expected(case, rank, inputs)))

    kernels = list[OpRecord]()

    def keep_kernels(_sip: int, records: Sequence[OpRecord]) -> None:
        kernels.extend(each for each in records if each.engine == "pe_cpu.collective")

    # All ranks in this process: worker processes simulate different points. The whole op log of
    # 2,048 PEs would need gigabytes.
    returned = simulate(
        main,
        point.ranks,
        topology=point.topology,
        ccl=point.ccl,
        data=has_data,
        on_records=keep_kernels,
    ).returned
    return CallRun(*kernel_span(kernels), sum(returned.values()))


def shard(point: AlgorithmPoint, rank: int) -> Array:
    """The operand of a rank: rows of integers, small enough that no sum exceeds `EXACT`."""
    limit = EXACT // point.ranks
    rng = np.random.default_rng([SEED, rank, point.nbytes])
    shape = (point.case.input_rows, point.case.count)
    return rng.integers(-limit, limit, shape, endpoint=True).astype(np.float16)


def expected(case: PerfCase, rank: int, inputs: Sequence[Array]) -> Array:
    """The result of a rank after the collective; row r of a part is that of rank r."""
    total = np.stack(inputs).sum(axis=0, dtype=np.float16)
    origins = [origin_of(case, rank, row) for row in range(case.output_rows)]
    return np.stack([(total if of is None else inputs[of])[row] for of, row in origins])
