"""Weights, times, bounds and checks which the benches of tensor parallel layers share.

The bound of a layer is a sum of lower bounds: of each product the roofline of the whole SIP, and of
the all-reduce the time of its bytes over the links between SIPs (`collective_perf/bound.py`).
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import ceil

import numpy as np

from kernbench import Column, Table, TableRow, torch, tp
from kernbench.benches.collective_perf.bound import CollectiveBounds
from kernbench.benches.collective_perf.collective import COLLECTIVES, DTYPES, PerfCase
from kernbench.benches.flags import check_choice, check_least
from kernbench.benches.products import random_elements
from kernbench.oracle.theory.roofline import bytes_ps
from runtime.ccl.config import CclConfig
from runtime.core.dtypes import DType
from runtime.core.errors import UsageError
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Array

dist = torch.distributed
FLOATS = {each.torch_name: each for each in (torch.float16, torch.bfloat16, torch.float32)}
METRICS = (Column("roofline", "ns"), Column("alpha-beta", "ns"), Column("of bound", "%"))
"""The lower bounds of the products and of the all-reduce; their sum in percent of the time."""


def join_groups(rank: int) -> int:
    """Initialise the process group and one tensor parallel group of all ranks; their number."""
    torch.ahbm.set_device(rank)
    dist.init_process_group("ahbm")
    tp.initialize_model_parallel(dist.get_world_size())
    return tp.get_tensor_model_parallel_world_size()


def leave_groups() -> None:
    """The inverse of `join_groups`."""
    tp.destroy_model_parallel()
    dist.destroy_process_group()


def check_layer_flags(_ccl: CclConfig, *, dtype: str, warmup: int, **sizes: int) -> None:
    """Raise `UsageError` for wrong flags of a layer, before a process starts."""
    check_choice("dtype", dtype, FLOATS)
    check_least(0, warmup=warmup)
    check_least(1, **sizes)


def check_divides(flag: str, value: int, ranks: int) -> None:
    """`UsageError` for a length that the ranks do not divide."""
    if value % ranks:
        raise UsageError(f"--{flag} {value}: does not divide by {ranks} ranks")


def weights(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """Elements of a whole matrix, equal on every rank: sums over axis 0 have a variance below 1."""
    # Uniform in [-1, 1) has a variance of 1/3.
    drawn = random_elements(shape, torch.float32, seed) / np.sqrt(shape[0])
    return drawn.astype(dtype.numpy)


def timed(call: Callable[[], torch.Tensor], warmup: int) -> tuple[torch.Tensor, int]:
    """The last result of a call, and its time from a common start of all ranks."""
    for _ in range(warmup):
        call()
    # A barrier in the current stream: without it, the time would include waits for slower ranks.
    dist.barrier()
    torch.ahbm.synchronize()
    began_ps = torch.ahbm.elapsed_ps()
    result = call()
    torch.ahbm.synchronize()
    return result, torch.ahbm.elapsed_ps() - began_ps


def roofline_ps(products: Iterable[tuple[int, int, int]], dtype: DType) -> int:
    """The least time of products (m, k, n) one after the other, on all PEs of a SIP."""
    properties = torch.ahbm.get_device_properties()
    total = Fraction(0)
    for m, k, n in products:
        # 1 TFLOPS is one operation a picosecond.
        peak = Fraction(properties.peak_gemm_tflops_per_pe) * properties.pe_count
        nbytes = (m * k + k * n + m * n) * dtype.itemsize
        memory_gbs = Fraction(properties.hbm_gbs_per_pe) * properties.pe_count
        # The roofline of S. Williams, A. Waterman, D. Patterson (2009): the operations at the peak
        # rate or the bytes at the bandwidth of the memory, whichever takes longer.
        total += max(2 * m * k * n / peak, bytes_ps(nbytes, memory_gbs))
    return ceil(total)


def all_reduce_bound_ps(count: int, dtype: DType, ranks: int, cubes: int = 1, pes: int = 1) -> int:
    """The least time of the kernels of an all-reduce of `count` elements on at most `cubes` cubes
    and `pes` PEs of each. Its launch overlaps with the kernels before it.
    """
    name = next(name for name, each in DTYPES.items() if each == dtype)
    case = PerfCase(COLLECTIVES["all_reduce"], ranks, count, name, "sum", -1)
    bounds = CollectiveBounds(running_rank().topology, range(cubes), pes).of(case)
    return max(bound.time_ps - bound.launch_ps for bound in bounds)


def table_of(
    labels: dict[str, str | int], time_ps: int, products_ps: int, all_reduce_ps: int
) -> Table:
    """A table with one row: sizes, time, the two bounds and their share of the time."""
    bound_ps = products_ps + all_reduce_ps
    values = (products_ps / 1000, all_reduce_ps / 1000, 100 * bound_ps / time_ps)
    row = TableRow(tuple(labels.values()), time_ps, values)
    return Table(tuple(Column(label) for label in labels), METRICS, (row,))


def is_equal_on_all_ranks(tensor: torch.Tensor) -> bool:
    """Whether all ranks of the tensor parallel group have the same bits; they exchange them."""
    group = tp.get_tensor_model_parallel_group()
    others = [torch.empty(tensor.shape, dtype=tensor.dtype) for _ in range(group.world_size)]
    dist.all_gather(others, tensor, group=group)
    # The arrays of a run without data are masked, and have no bytes of their own.
    own, *gathered = (np.ma.getdata(each.numpy()).tobytes() for each in (tensor, *others))
    return all(each == own for each in gathered)


def is_within(result: Array, exact: Array, allowed: Array) -> bool:
    """Whether each element differs by what is allowed at most."""
    # Not `any(... > allowed)`: a result that is not a number must fail.
    return bool(np.all(np.abs(result.astype(np.float64) - exact) <= allowed))


def eps(dtype: DType) -> float:
    """The distance from 1 to the next number of a type."""
    bits = {"float16": 10, "bfloat16": 7, "float32": 23}[dtype.torch_name]
    return 2.0**-bits
