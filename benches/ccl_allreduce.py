"""All-reduce over all SIPs, measured and checked in the terms of nccl-tests."""

import numpy as np

from runtime import DPPolicy, bench, torch
from runtime.bench_registry import BenchOutcome, PerfRow
from runtime.dtypes import ALL
from runtime.errors import UsageError, nearest

dist = torch.distributed
DTYPES = {dtype.torch_name: dtype for dtype in ALL}


@bench(
    "ccl-allreduce",
    "all-reduce over all SIPs, checked on every cube, with a table as in nccl-tests",
    algorithm="algorithm of ccl.yaml: intercube adds every cube of every SIP, ring adds SIP by SIP",
    min_bytes="smallest size per cube, bytes",
    max_bytes="largest size per cube, bytes",
    factor="each size is so many times the one before",
    dtype="element type: float16, bfloat16, float32, int32",
)
def ccl_allreduce(
    rank: int,
    *,
    algorithm: str = "intercube",
    min_bytes: int = 256,
    max_bytes: int = 16384,
    factor: int = 8,
    dtype: str = "float32",
) -> BenchOutcome:
    """Rank r starts every cube with r + 1; afterwards every cube must hold the sum."""
    _check(min_bytes, max_bytes, factor, dtype)
    torch.ahbm.set_device(rank)
    dist.init_process_group("ahbm", algorithm=algorithm)
    rows: list[PerfRow] = []
    good = set(range(_cubes()))
    size = min_bytes
    while size <= max_bytes:
        row, right = _measure(rank, algorithm, size, dtype)
        rows.append(row)
        good &= right
        size *= factor
    world_size = dist.get_world_size()
    dist.destroy_process_group()
    assert world_size == torch.ahbm.device_count()
    return BenchOutcome(f"{algorithm}_allreduce", len(good), _cubes() - len(good), tuple(rows))


def _cubes() -> int:
    return torch.ahbm.cube_count()


def _measure(rank: int, algorithm: str, size: int, dtype_name: str) -> tuple[PerfRow, set[int]]:
    """One size: the row, and the cubes that hold the right sum."""
    dtype, cubes, world_size = DTYPES[dtype_name], _cubes(), dist.get_world_size()
    count = max(size // dtype.itemsize, 1)
    tensor = torch.full((cubes, count), rank + 1, dtype=dtype, dp=DPPolicy(cube="row_wise", num_pes=1))
    dist.barrier()
    began_ps = torch.ahbm.elapsed_ps()
    dist.all_reduce(tensor)
    torch.ahbm.synchronize()
    time_ps = torch.ahbm.elapsed_ps() - began_ps
    contributions = cubes if algorithm == "intercube" else 1
    expected = contributions * world_size * (world_size + 1) // 2
    values = tensor.numpy()
    wrong_by_cube = np.ma.filled(np.sum(values != expected, axis=1), 0)
    nbytes = count * dtype.itemsize
    algbw_gbs = nbytes * 1000 / time_ps
    busbw_gbs = algbw_gbs * 2 * (world_size - 1) / world_size
    row = PerfRow(nbytes, count, dtype_name, "sum", time_ps, algbw_gbs, busbw_gbs, int(wrong_by_cube.sum()))
    return row, {cube for cube in range(cubes) if not wrong_by_cube[cube]}


def _check(min_bytes: int, max_bytes: int, factor: int, dtype: str) -> None:
    if dtype not in DTYPES:
        raise UsageError(f"unknown dtype {dtype!r}{nearest(dtype, DTYPES)}")
    if factor < 2 or not 0 < min_bytes <= max_bytes:
        raise UsageError(
            f"sizes go from --min-bytes {min_bytes} to --max-bytes {max_bytes} by --factor {factor}: "
            "needs 0 < min <= max and a factor of at least 2"
        )
