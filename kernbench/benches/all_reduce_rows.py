"""Measures the all-reduces of the bench `ccl-allreduce` on one rank."""

from collections.abc import Iterator

import numpy as np

from kernbench import DPPolicy, torch
from runtime.core.bench_registry import PerfRow
from runtime.core.dtypes import DType
from runtime.device.rank.rank_state import running_rank

dist = torch.distributed


def measured_rows(
    rank: int, algorithm: str, sizes: tuple[int, int, int], dtype: DType, warmup: int
) -> tuple[tuple[PerfRow, ...], int, int | None]:
    """The row of every size, the cubes of the SIP, and those with a wrong sum.

    `sizes` are the smallest and the largest size in bytes, and the factor between them. The number
    of wrong cubes is None in a run without data.
    """
    torch.ahbm.set_device(rank)
    dist.init_process_group("ahbm", algorithm=algorithm)
    rows: list[PerfRow] = []
    bad: set[int] = set()
    for count in _counts(*sizes, dtype):
        row, wrong_cubes = _measure(rank, count, dtype, warmup)
        rows.append(row)
        bad |= wrong_cubes
    dist.destroy_process_group()
    cubes = torch.ahbm.cube_count()
    return tuple(rows), cubes, len(bad) if torch.ahbm.has_data() else None


def _counts(min_bytes: int, max_bytes: int, factor: int, dtype: DType) -> Iterator[int]:
    """Elements per shard: `n_elem` of the algorithm if it is set, else the sizes of the flags."""
    configured = dist.get_algorithm().n_elem
    if configured is not None:
        yield configured
        return
    size = min_bytes
    while size <= max_bytes:
        yield size // dtype.itemsize
        size *= factor


def _measure(rank: int, count: int, dtype: DType, warmup: int) -> tuple[PerfRow, set[int]]:
    """Measure one size: its row, and the cubes that hold a wrong sum."""
    cubes, world_size = torch.ahbm.cube_count(), dist.get_world_size()
    pes, contributions = _participants(cubes)
    placement = DPPolicy(cube="row_wise", pe="row_wise", num_pes=pes)
    tensor = torch.empty(cubes * pes, count, dtype=dtype, dp=placement)
    # The first write maps the tensor's pages; without warm-up the time would include the mapping.
    for _ in range(warmup):
        tensor.copy_(0)
        dist.all_reduce(tensor)
    tensor.copy_(rank + 1)
    # Ranks finish the copy at different times; the all-reduce is timed from a common start.
    dist.barrier()
    began_ps = torch.ahbm.elapsed_ps()
    dist.all_reduce(tensor)
    torch.ahbm.synchronize()
    time_ps = torch.ahbm.elapsed_ps() - began_ps
    # Each contribution of rank r is r + 1, and 1 + 2 + ... + n = n (n + 1) / 2.
    expected = contributions * world_size * (world_size + 1) // 2
    wrong_by_cube = np.count_nonzero(tensor.numpy().reshape(cubes, -1) != expected, axis=1)
    nbytes = count * dtype.itemsize
    # nccl-tests, doc/PERFORMANCE.md: each byte crosses the bus 2 (n - 1) / n times.
    algbw_gbs = nbytes * 1000 / time_ps
    busbw_gbs = algbw_gbs * 2 * (world_size - 1) / world_size
    wrong = int(wrong_by_cube.sum()) if torch.ahbm.has_data() else None
    row = PerfRow(
        size_bytes=nbytes,
        count=count,
        dtype=dtype.torch_name,
        redop="sum",
        time_ps=time_ps,
        algbw_gbs=algbw_gbs,
        busbw_gbs=busbw_gbs,
        wrong=wrong,
    )
    return row, {cube for cube in range(cubes) if wrong_by_cube[cube]}


def _participants(cubes: int) -> tuple[int, int]:
    """The PEs of a cube that have a shard, and the shards of a rank that are added up."""
    group = running_rank().process_group
    assert group is not None, "measured_rows has initialised it"
    # Only algorithms that also combine the shards of one rank have local neighbours.
    pes = {pe for _, pe in group.base.plan.mapping.local}
    return (len(pes), cubes * len(pes)) if pes else (1, 1)
