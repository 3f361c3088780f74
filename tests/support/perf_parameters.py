"""The parameters of a `perf` run of 8 to 64 bytes, of which tests replace some."""

from kernbench.benches.collective_perf.collective import PerfParameters

PARAMETERS = PerfParameters(
    collective="all_reduce",
    min_bytes=8,
    max_bytes=64,
    step_bytes=1 << 20,
    step_factor=2,
    iters=1,
    warmup=1,
    check=1,
    op="sum",
    dtype="half",
    root=0,
    algorithm="",
    cubes="0",
    pes=8,
)
