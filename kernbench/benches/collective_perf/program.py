"""The rank program of `perf`: warms up, times and checks each row."""

import sys
from collections.abc import Callable

from kernbench import BenchOutcome, torch
from kernbench.benches.collective_perf.calls import Buffers, allocate, call
from kernbench.benches.collective_perf.collective import PerfCase, PerfParameters, perf_cases
from kernbench.benches.collective_perf.values import inputs, wrong_elements
from runtime.core.bench_registry import PerfRow, Scalar
from runtime.core.errors import UsageError
from runtime.core.wallclock import now_s
from runtime.device.rank.rank_state import running_rank

dist = torch.distributed
SILENCE_S = 5.0
"""Least time between two progress lines of rank 0: a long measurement must not look like a hang."""


def collective_perf(rank: int, **flags: Scalar) -> BenchOutcome:
    """Measure all rows of the `PerfParameters` whose fields are `flags`."""
    parameters = PerfParameters(**flags)  # pyright: ignore[reportArgumentType] - as the command sent them
    torch.ahbm.set_device(rank)
    dist.init_process_group("ahbm", algorithm=parameters.algorithm or None)
    _check_algorithm()
    rows: list[PerfRow] = []
    printed_s = now_s()
    for case in perf_cases(parameters, dist.get_world_size()):
        row = _measure(case, parameters, rank)
        rows.append(row)
        if rank == 0 and now_s() - printed_s >= SILENCE_S:
            printed_s = now_s()
            print(
                f"# {row.size_bytes} B: {row.time_ps / 1e6:.2f} us on rank 0",
                file=sys.stderr,
                flush=True,
            )
    dist.destroy_process_group()
    wrong = sum(row.wrong > 0 for row in rows if row.wrong is not None)
    checked = sum(row.wrong is not None for row in rows)
    return BenchOutcome(
        parameters.collective, checked - wrong, wrong, tuple(rows), unchecked=len(rows) - checked
    )


def _check_algorithm() -> None:
    """Refuse algorithms that also combine the shards of one rank.

    nccl-tests measures a collective between ranks; with such an algorithm the time would include
    another operation, and the expected result would differ.
    """
    group = running_rank().process_group
    assert group is not None, "collective_perf has initialised it"
    for name, table in group.tables.items():
        # No collective runs on the tables of `queues`, which have no module.
        if table.group.algorithm.module and table.plan.mapping.local:
            raise UsageError(
                f"perf: algorithm {name!r} also combines the shards of one rank with each other; "
                "perf measures collectives between ranks; "
                f"--bench ccl-allreduce --algorithm {name} measures its all-reduce, and "
                "docs/internals/collective-forms.md has its closed form"
            )


def _refusing(collective: Callable[[], object]) -> Callable[[], object]:
    """The call, with an error about algorithm or placement turned into one about the arguments."""

    def start() -> None:
        try:
            collective()
        except (ValueError, RuntimeError) as error:
            raise UsageError(f"perf: {error}") from error

    return start


def _measure(case: PerfCase, parameters: PerfParameters, rank: int) -> PerfRow:
    buffers = allocate(case, parameters)
    collective = _refusing(call(case, buffers))
    for _ in range(parameters.warmup):
        collective()
    # All ranks start the timed iterations together, as in nccl-tests.
    dist.barrier()
    began_ps = torch.ahbm.elapsed_ps()
    for _ in range(parameters.iters):
        collective()
    torch.ahbm.synchronize()
    # The mean, because a rank starts an iteration while others still finish the previous one.
    time_ps = round((torch.ahbm.elapsed_ps() - began_ps) / parameters.iters)
    wrong = _check(case, parameters, rank, buffers)
    return PerfRow(
        size_bytes=case.size_bytes,
        count=case.count,
        dtype=case.dtype_name,
        redop=case.op,
        time_ps=time_ps,
        algbw_gbs=case.algbw_gbs(time_ps),
        busbw_gbs=case.busbw_gbs(time_ps),
        wrong=wrong,
    )


def _check(case: PerfCase, parameters: PerfParameters, rank: int, buffers: Buffers) -> int | None:
    """The wrong elements of this rank over all repetitions; None if nothing is checked."""
    if not parameters.check or not torch.ahbm.has_data():
        return None
    wrong = 0
    for repetition in range(parameters.check):
        # New data for every repetition: a collective that does nothing would leave old results.
        buffers.source.copy_(inputs(case, repetition, rank))
        call(case, buffers)()
        wrong += wrong_elements(case, repetition, rank, buffers.target.numpy())
    return wrong
