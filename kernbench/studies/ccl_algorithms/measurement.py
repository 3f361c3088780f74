"""Measures one call of the study, on integers whose sums float16 represents exactly."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.benches.collective_perf.cubes import nearest_cubes
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

dist = torch.distributed
Tensor = torch.Tensor


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
        dist.init_process_group("ahbm", algorithm=point.algorithm)
        source = (
            torch.from_numpy(inputs[rank], dp=policy)
            if inputs
            else torch.empty(case.input_rows, case.count, dtype=torch.float16, dp=policy)
        )
        target = torch.zeros(case.output_rows, case.count, dtype=torch.float16, dp=policy)
        changed = CALLS[point.collective](source, target)
        if not inputs:
            torch.ahbm.synchronize()
            return 0
        # `numpy` waits for the collective and reads all shards back.
        return int(np.count_nonzero(changed.numpy() != expected(point.collective, rank, inputs)))

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


def expected(collective: str, rank: int, inputs: Sequence[Array]) -> Array:
    """The result of a rank after the collective, with root 0; row r of a part is that of rank r."""
    total = np.stack(inputs).sum(axis=0, dtype=np.float16)
    match collective:
        case "all_reduce":
            return total
        case "reduce":
            return inputs[rank] if rank else total
        case "broadcast":
            return inputs[0]
        case "all_gather_into_tensor":
            return np.concatenate(inputs)
        case "reduce_scatter_tensor":
            return total[rank : rank + 1]
        case _:
            return np.stack([each[rank] for each in inputs])


def _all_reduce(source: Tensor, target: Tensor) -> Tensor:  # noqa: ARG001 - all have one signature
    dist.all_reduce(source)
    return source


def _reduce(source: Tensor, target: Tensor) -> Tensor:  # noqa: ARG001 - all have one signature
    dist.reduce(source, 0)
    return source


def _broadcast(source: Tensor, target: Tensor) -> Tensor:  # noqa: ARG001 - all have one signature
    dist.broadcast(source, 0)
    return source


def _all_gather(source: Tensor, target: Tensor) -> Tensor:
    dist.all_gather_into_tensor(target, source)
    return target


def _reduce_scatter(source: Tensor, target: Tensor) -> Tensor:
    dist.reduce_scatter_tensor(target, source)
    return target


def _all_to_all(source: Tensor, target: Tensor) -> Tensor:
    dist.all_to_all_single(target, source)
    return target


CALLS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "all_gather_into_tensor": _all_gather,
    "reduce_scatter_tensor": _reduce_scatter,
    "all_to_all_single": _all_to_all,
}
"""A call by collective; it returns the tensor that it changes."""
