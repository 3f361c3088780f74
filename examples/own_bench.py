"""A bench and a study outside the package.

Run them with `kernbench --bench examples/own_bench.py:scale-check` and
`kernbench --bench examples/own_bench.py:scale-sizes`.
"""

import numpy as np

from kernbench import (
    BenchOutcome,
    Column,
    DPPolicy,
    StudyOptions,
    Table,
    TableRow,
    bench,
    study,
    tl,
    torch,
)


def scale(x: tl.Pointer, numel: int, factor: float) -> None:
    """Kernel: multiply the `numel` elements of the shard of this PE by `factor`."""
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    shard = x + pe * numel
    tl.store(shard, tl.load(shard, numel) * factor)


@bench(
    "scale-check",
    "scales a vector on all PEs of every SIP, checked",
    numel="elements for each PE",
    factor="what they are multiplied by",
)
def scale_check(rank: int, *, numel: int = 64, factor: float = 0.5) -> BenchOutcome:
    """Every rank scales its own vector and compares it with numpy."""
    torch.ahbm.set_device(rank)
    device = torch.ahbm.get_device_properties()
    pes = device.cubes * device.pes_per_cube
    values = np.arange(pes * numel, dtype=np.float32)
    x = torch.from_numpy(values, dp=DPPolicy(cube="row_wise", pe="row_wise"))
    launched = torch.launch("scale", scale, x, numel, factor)
    is_right = np.array_equal(x.numpy(), values * np.float32(factor))
    # Each element is read once and written once: bytes per ps are TB/s.
    rate_gbs = 2000 * values.nbytes / launched.pe_exec_ps
    table = Table(
        labels=(Column("pes"), Column("size", "B")),
        values=(Column("rate", "GB/s"),),
        rows=(TableRow((pes, values.nbytes), launched.pe_exec_ps, (rate_gbs,)),),
    )
    # In a run with --no-data there are times and no values.
    if not torch.ahbm.has_data():
        return BenchOutcome("scale", ok=0, wrong=0, unchecked=1, table=table)
    return BenchOutcome("scale", ok=int(is_right), wrong=int(not is_right), table=table)


@study("scale-sizes", "the rate of scale-check by size", largest="elements for each PE, at most")
def scale_sizes(options: StudyOptions, *, largest: int = 1024) -> bool:
    """Simulate several sizes on one SIP and print a line for each."""
    # A simulation in this process; imported here, so that --list does not load a simulator.
    from kernbench import simulate

    numel, right = 64, True
    while numel <= largest:
        run = simulate(
            lambda rank, n=numel: scale_check(rank, numel=n), 1, topology=options.topology
        )
        outcome: BenchOutcome = run.returned[0]
        assert outcome.table is not None
        [row] = outcome.table.rows
        print(f"{row.labels[1]:>7} B  {row.values[0]:>9,.1f} GB/s")
        right = right and not outcome.wrong
        numel *= 4
    return right
