"""The bench `ccl-allreduce`: all-reduce over all SIPs, timed and checked as nccl-tests does."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernbench import BenchOutcome, DPPolicy, bench, torch
from kernbench.benches.flags import check_algorithm
from runtime.ccl.config import CclConfig
from runtime.core.bench_registry import PerfRow
from runtime.core.dtypes import DType, bfloat16, float16, float32, int8, int32
from runtime.core.errors import UsageError, nearest
from runtime.torch.rank_state import running_rank

dist = torch.distributed
DTYPES = {dtype.torch_name: dtype for dtype in (float16, bfloat16, float32, int8, int32)}


def check_flags(ccl: CclConfig, *, algorithm: str, **sizes: Any) -> None:
    """Raise `UsageError` or `ConfigError` for wrong flags, before a process starts."""
    check_algorithm(ccl, algorithm)
    _check_sizes(**sizes)


def _check_sizes(min_bytes: int, max_bytes: int, factor: int, dtype: str, warmup: int) -> None:
    if dtype not in DTYPES:
        raise UsageError(f"unknown dtype {dtype!r}{nearest(dtype, DTYPES)}")
    if factor < 2 or not 0 < min_bytes <= max_bytes:
        raise UsageError(
            f"sizes go from --min-bytes {min_bytes} to --max-bytes {max_bytes} "
            f"by --factor {factor}: needs 0 < min <= max and a factor of at least 2"
        )
    if warmup < 0:
        raise UsageError(f"--warmup {warmup}: cannot be negative")


@bench(
    "ccl-allreduce",
    "all-reduce over all SIPs, checked on every cube, with a table as in nccl-tests",
    check_flags,
    algorithm=(
        "algorithm of ccl.yaml: intercube adds every cube of every SIP, hierarchical every PE, "
        "all others SIP by SIP"
    ),
    min_bytes="smallest size per shard, bytes",
    max_bytes="largest size per shard, bytes",
    factor="ratio of each size to the previous size",
    dtype="element type: float16, bfloat16, float32, int32",
    warmup="all-reduces before the timed one; the first one also maps the tensor",
)
def ccl_allreduce(
    rank: int,
    *,
    algorithm: str = "intercube",
    min_bytes: int = 256,
    max_bytes: int = 16384,
    factor: int = 8,
    dtype: str = "float32",
    warmup: int = 1,
) -> BenchOutcome:
    """Every participating shard of rank r starts with r + 1, and must end with the sum over all.

    With most algorithms PE 0 of every cube has a shard, with hierarchical ones every PE. Where the
    algorithm sets `n_elem` in `ccl.yaml`, that size replaces those of the flags.
    """
    _check_sizes(min_bytes, max_bytes, factor, dtype, warmup)
    torch.ahbm.set_device(rank)
    dist.init_process_group("ahbm", algorithm=algorithm)
    rows: list[PerfRow] = []
    cubes = torch.ahbm.cube_count()
    bad: set[int] = set()
    for count in _counts(min_bytes, max_bytes, factor, DTYPES[dtype]):
        row, wrong_cubes = _measure(rank, count, DTYPES[dtype], warmup)
        rows.append(row)
        bad |= wrong_cubes
    dist.destroy_process_group()
    label = f"{algorithm}_allreduce"
    if not torch.ahbm.has_data():
        return BenchOutcome(label, 0, 0, tuple(rows), unchecked=cubes)
    return BenchOutcome(label, cubes - len(bad), len(bad), tuple(rows))


def _counts(min_bytes: int, max_bytes: int, factor: int, dtype: DType) -> Iterator[int]:
    """Elements per shard: `n_elem` of the algorithm if it is set, else the sizes of the flags."""
    configured = dist.get_algorithm().n_elem
    if configured is not None:
        yield configured
        return
    size = min_bytes
    while size <= max_bytes:
        yield max(size // dtype.itemsize, 1)
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
    assert group is not None, "ccl_allreduce has initialised it"
    # Only algorithms that also combine the shards of one rank have local neighbours.
    pes = {pe for _, pe in group.base.plan.mapping.local}
    return (len(pes), cubes * len(pes)) if pes else (1, 1)
