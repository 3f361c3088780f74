"""What every rank runs: each row is warmed up, timed over its iterations, and checked with random data."""

import sys
from collections.abc import Callable

from kernbench.benches.collective_perf.calls import Buffers, allocate, call
from kernbench.benches.collective_perf.collective import PerfCase, PerfParameters, perf_cases
from kernbench.benches.collective_perf.values import inputs, wrong_elements
from runtime import torch
from runtime.core.bench_registry import BenchOutcome, PerfRow, Scalar
from runtime.core.errors import UsageError
from runtime.core.wallclock import now_s
from runtime.torch.rank_state import running_rank

dist = torch.distributed
SILENCE_S = 5.0
"""Rank 0 says which row is done where the one before was said so long ago: a long table must not look like a hang."""


def collective_perf(rank: int, **flags: Scalar) -> BenchOutcome:
    """One row for each size. `flags` are the fields of a `PerfParameters`."""
    request = PerfParameters(**flags)  # pyright: ignore[reportArgumentType] - its fields are what the coordinator sends
    torch.ahbm.set_device(rank)
    dist.init_process_group("ahbm", algorithm=request.algorithm or None)
    _check_algorithm()
    rows: list[PerfRow] = []
    said_s = now_s()
    for case in perf_cases(request, dist.get_world_size()):
        row = _measure(case, request, rank)
        rows.append(row)
        if rank == 0 and now_s() - said_s >= SILENCE_S:
            said_s = now_s()
            print(
                f"# {row.size_bytes} B: {row.time_ps / 1e6:.2f} us on rank 0",
                file=sys.stderr,
                flush=True,
            )
    dist.destroy_process_group()
    wrong = sum(row.wrong > 0 for row in rows if row.wrong is not None)
    checked = sum(row.wrong is not None for row in rows)
    return BenchOutcome(
        request.collective, checked - wrong, wrong, tuple(rows), unchecked=len(rows) - checked
    )


def _check_algorithm() -> None:
    joined = running_rank().process_group
    assert joined is not None, "the rank has joined it"
    for name, table in joined.tables.items():
        if table.plan.mapping.local:
            raise UsageError(
                f"perf: algorithm {name!r} also combines the shards of one rank with each other; "
                "what is measured here goes from rank to rank alone"
            )


def _refusing(collective: Callable[[], object]) -> Callable[[], object]:
    """The call; where algorithm and placement do not suit each other, the command line is at fault."""

    def start() -> None:
        try:
            collective()
        except (ValueError, RuntimeError) as error:
            raise UsageError(f"perf: {error}") from error

    return start


def _measure(case: PerfCase, request: PerfParameters, rank: int) -> PerfRow:
    buffers = allocate(case, request)
    collective = _refusing(call(case, buffers))
    for _ in range(request.warmup):
        collective()
    dist.barrier()
    began_ps = torch.ahbm.elapsed_ps()
    for _ in range(request.iters):
        collective()
    torch.ahbm.synchronize()
    time_ps = round((torch.ahbm.elapsed_ps() - began_ps) / request.iters)
    wrong = _check(case, request, rank, buffers)
    bandwidths = case.algbw_gbs(time_ps), case.busbw_gbs(time_ps)
    return PerfRow(
        case.size_bytes, case.count, case.dtype_name, case.op, time_ps, *bandwidths, wrong
    )


def _check(case: PerfCase, request: PerfParameters, rank: int, buffers: Buffers) -> int | None:
    """Wrong elements of this rank over all repetitions; None where nothing is checked."""
    if not request.check or not torch.ahbm.has_data():
        return None
    wrong = 0
    for repetition in range(request.check):
        buffers.source.copy_(inputs(case, repetition, rank))
        call(case, buffers)()
        wrong += wrong_elements(case, repetition, rank, buffers.target.numpy())
    return wrong
