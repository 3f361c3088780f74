"""The bench `tp-mlp`: two linear layers of a transformer, divided over all SIPs as in Megatron.

The columns of the first weight and the rows of the second one are divided over the ranks, so one
all-reduce follows the second product. `tp_mlp` is the program of a rank. The command line runs it
with `--bench tp-mlp`; `python -m kernbench.benches.tp_mlp` runs the same function through
`torch.multiprocessing.spawn`.
"""

import argparse
import sys
from typing import Any

import numpy as np

from kernbench import BenchOutcome, bench, torch
from kernbench.benches.flags import check_least
from kernbench.benches.tensor_parallel import (
    FLOATS,
    all_reduce_bound_ps,
    check_divides,
    check_layer_flags,
    eps,
    is_equal_on_all_ranks,
    is_within,
    join_groups,
    leave_groups,
    roofline_ps,
    table_of,
    timed,
    weights,
)
from runtime.core.dtypes import DType
from runtime.core.errors import UsageError
from runtime.language.value import Array
from runtime.tp import ColumnParallelLinear, RowParallelLinear

CHECKS = 3
"""The checks of each rank."""
SMALL, ULPS = 16, 3
"""The width of the layers with equal weights, and their tolerance in units of the last place."""


@bench(
    "tp-mlp",
    "two linear layers divided over all SIPs as in Megatron, checked against float64 on every rank",
    check_layer_flags,
    tokens="rows of x",
    width="columns of x and of the result",
    hidden="columns between the layers, divided over the ranks",
    dtype=f"element type: {', '.join(FLOATS)}",
    warmup="calls before the timed one; the first one also maps the tensors",
)
def tp_mlp(
    rank: int,
    *,
    tokens: int = 64,
    width: int = 256,
    hidden: int = 1024,
    dtype: str = "float16",
    warmup: int = 1,
) -> BenchOutcome:
    """Check a small pair of layers by its closed form, and time a random pair against float64.

    All ranks must have the same bits.
    """
    ranks, element = join_groups(rank), FLOATS[dtype]
    check_divides("hidden", hidden, ranks)
    is_closed = _is_closed_form(ranks, element)
    first, second = _layers(width, hidden, element)
    w1, w2 = weights((width, hidden), element, 1), weights((hidden, width), element, 2)
    own = slice(rank * hidden // ranks, (rank + 1) * hidden // ranks)
    first.weight.copy_(w1[:, own])
    second.weight.copy_(w2[own])
    x = weights((tokens, width), element, 3)
    on_device = torch.from_numpy(x)
    y, time_ps = timed(lambda: second(first(on_device)), warmup)
    is_right = _is_right(y.numpy(), x, w1, w2, ranks, element)
    is_equal = is_equal_on_all_ranks(y)
    leave_groups()
    labels = {"tokens": tokens, "width": width, "hidden": hidden, "dtype": dtype}
    products = ((tokens, width, hidden // ranks), (tokens, hidden // ranks, width))
    table = table_of(
        labels,
        time_ps,
        roofline_ps(products, element),
        all_reduce_bound_ps(y.numel(), element, ranks),
    )
    if not torch.ahbm.has_data():
        return BenchOutcome("tp_mlp", 0, 0, unchecked=CHECKS, table=table)
    ok = is_closed + is_right + is_equal
    return BenchOutcome("tp_mlp", ok, CHECKS - ok, table=table)


def _layers(
    width: int, hidden: int, dtype: DType
) -> tuple[ColumnParallelLinear, RowParallelLinear]:
    return (
        ColumnParallelLinear(width, hidden, dtype=dtype),
        RowParallelLinear(hidden, width, dtype=dtype),
    )


def _is_closed_form(ranks: int, dtype: DType) -> bool:
    """16 products of 0.1 and 0.02, then 16 for each rank of 0.032 and 0.03."""
    first, second = _layers(SMALL, SMALL * ranks, dtype)
    first.weight.copy_(0.02)
    second.weight.copy_(0.03)
    y = second(first(torch.full((4, SMALL), 0.1, dtype=dtype))).numpy()
    exact = np.full((4, SMALL), SMALL * 0.1 * 0.02 * SMALL * 0.03 * ranks)
    return is_within(y, exact, ULPS * eps(dtype) * exact)


def _is_right(y: Array, x: Array, w1: Array, w2: Array, ranks: int, dtype: DType) -> bool:
    x, w1, w2 = (each.astype(np.float64) for each in (x, w1, w2))
    hidden = x @ w1
    parts = [
        np.abs(left @ right)
        for left, right in zip(np.split(hidden, ranks, 1), np.split(w2, ranks), strict=True)
    ]
    # Of each number half of eps: the columns of the first product, the product of each rank, and
    # each sum of two of them. Twice that for the roundings of sums in float32.
    allowed = eps(dtype) * (np.abs(hidden) @ np.abs(w2) + ranks * sum(parts))
    return is_within(y, hidden @ w2, allowed)


def run_spawned(rank: int, flags: dict[str, Any]) -> None:
    """One rank of a spawned run; raises if a check fails."""
    outcome = tp_mlp(rank, **flags)
    if outcome.wrong:
        raise AssertionError(f"rank {rank}: {outcome.wrong} of {CHECKS} checks failed")


def main() -> None:
    """Spawn the ranks, and report when all of them have passed their checks."""
    parser = argparse.ArgumentParser(
        prog="python -m kernbench.benches.tp_mlp",
        description="Run two linear layers divided over SIPs, each rank in a spawned process.",
    )
    parser.add_argument("--nprocs", type=int, default=2, help="ranks, one SIP each [2]")
    parser.add_argument("--procs", type=int, help="processes [one for each rank]")
    parser.add_argument("--tokens", type=int, default=64, help="rows of x [64]")
    parser.add_argument("--width", type=int, default=256, help="columns of x and the result [256]")
    parser.add_argument(
        "--hidden", type=int, default=1024, help="columns between the layers [1024]"
    )
    flags = vars(parser.parse_args())
    nprocs, procs = flags.pop("nprocs"), flags.pop("procs")
    try:
        check_least(1, nprocs=nprocs, **flags)
        check_divides("hidden", flags["hidden"], nprocs)
    except UsageError as error:
        parser.error(str(error))
    torch.multiprocessing.spawn(run_spawned, args=(flags,), nprocs=nprocs, procs=procs)
    # A rank whose check fails raises, so all checks have passed.
    sys.stdout.write(f"tp_mlp (ws={nprocs}): {CHECKS * nprocs} OK\n")


if __name__ == "__main__":
    main()
