"""The bench `qkv-gemm-multi-pe`: the projections of `qkv-gemm` on PEs of several cubes."""

from kernbench import BenchOutcome, bench
from kernbench.benches.qkv_gemm import HELP, projection_plan, run_projections


@bench(
    "qkv-gemm-multi-pe",
    "the Q, K and V projections of GPT-3, scaled down, on PEs of several cubes of every SIP, "
    "checked",
    cubes="cubes of a SIP that take part; 0: all",
    pes="PEs of each of these cubes; 0: all",
    **HELP,
)
def qkv_gemm_multi_pe(
    rank: int,
    *,
    scale: int = 24,
    seq: int = 32,
    cubes: int = 0,
    pes: int = 0,
    dtype: str = "float16",
    layout: str = "blocked",
) -> BenchOutcome:
    """Every rank projects its own random tokens with its own weights, as in `qkv_gemm`."""
    plan = projection_plan(scale, seq, cubes, pes, dtype, layout)
    return run_projections("qkv_gemm_multi_pe", rank, plan)
