"""The bench `ccl-allreduce`: all-reduce over all SIPs, timed and checked as nccl-tests does."""

from typing import Any

from kernbench import BenchOutcome, bench
from kernbench.benches.flags import check_algorithm
from runtime.ccl.config import CclConfig
from runtime.core.dtypes import bfloat16, float16, float32, int8, int32
from runtime.core.errors import UsageError, nearest

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
    itemsize = DTYPES[dtype].itemsize
    if min_bytes % itemsize:
        raise UsageError(
            f"--min-bytes {min_bytes}: an element of {dtype} has {itemsize} bytes, and a size is a "
            "multiple of it"
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
    # Imported here: the command line reads the flags above, and needs neither arrays nor tensors.
    from kernbench.benches.all_reduce_rows import measured_rows

    label = f"{algorithm}_allreduce"
    rows, cubes, wrong = measured_rows(
        rank, algorithm, (min_bytes, max_bytes, factor), DTYPES[dtype], warmup
    )
    if wrong is None:
        return BenchOutcome(label, 0, 0, rows, unchecked=cubes)
    return BenchOutcome(label, cubes - wrong, wrong, rows)
