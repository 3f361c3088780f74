"""Measures one call of the study, on integers whose sums float16 represents exactly."""

from collections.abc import Callable, Sequence

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.benches.collective_perf.cubes import nearest_cubes
from kernbench.simulation import simulate
from kernbench.studies.all_reduce import kernel_span
from kernbench.studies.ccl_algorithms.rows import AlgorithmPoint, AlgorithmRow
from runtime.language.value import Array
from runtime.model.topology import parse_topology

SEED = 1
"""Of the data. Times do not depend on it."""
EXACT = 2048
"""All integers up to 2^11 are float16 numbers, so sums up to this value are exact in any order."""

dist = torch.distributed
Tensor = torch.Tensor


def measure(point: AlgorithmPoint) -> AlgorithmRow:
    """Simulate one point."""
    # The same cubes and spread as in `perf`, so that the selection fits what `perf` measures.
    topology = parse_topology(point.topology, "topology.yaml")
    cubes, pes = point.case.spread(nearest_cubes(topology)[: point.cubes], topology.pes_per_cube)
    placement = DPPolicy(cube="column_wise", pe="column_wise", cubes=cubes, num_pes=pes)
    # Integers: each sum is exact in any order, so every algorithm must give the same bits.
    inputs = [shard(point, rank) for rank in range(point.ranks)]

    def main(rank: int) -> int:
        dist.init_process_group("ahbm", algorithm=point.algorithm)
        source = torch.from_numpy(inputs[rank], dp=placement)
        shape = (point.case.output_rows, point.case.count)
        target = torch.zeros(shape, dtype=torch.float16, dp=placement)
        changed = CALLS[point.collective](source, target)
        # `numpy` waits for the collective and reads all shards back.
        return int(np.count_nonzero(changed.numpy() != expected(point.collective, rank, inputs)))

    # All ranks in this process: worker processes simulate different points.
    world = simulate(main, point.ranks, topology=point.topology, ccl=point.ccl)
    kernels = [record for _, record in world.of("pe_cpu.collective", "kernel ")]
    time_ps, skew_ps = kernel_span(kernels)
    return AlgorithmRow(
        collective=point.collective,
        algorithm=point.algorithm,
        ranks=point.ranks,
        nbytes=point.nbytes,
        time_ps=time_ps,
        skew_ps=skew_ps,
        wrong=sum(world.returned.values()),
        grid=point.grid,
        cubes=point.cubes,
        held_out=point.held_out,
    )


def shard(point: AlgorithmPoint, rank: int) -> Array:
    """The operand of a rank: rows of integers, small enough that no sum exceeds `EXACT`."""
    limit = EXACT // point.ranks
    rng = np.random.default_rng([SEED, rank, point.nbytes])
    shape = (point.case.input_rows, point.case.count)
    return rng.integers(-limit, limit, shape, endpoint=True).astype(np.float16)


def expected(collective: str, rank: int, inputs: Sequence[Array]) -> Array:
    """What a rank has after the collective, with root 0; row r of a part is that of rank r."""
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
