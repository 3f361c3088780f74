"""The Q, K and V projections of GPT-3, scaled down, with the columns of the weights over cubes and PEs."""

from kernbench.benches.qkv_gemm import HELP, planned, projections
from runtime import bench
from runtime.core.bench_registry import BenchOutcome


@bench(
    "qkv-gemm-multi-pe",
    "the Q, K and V projections of GPT-3, scaled down, on PEs of several cubes of every SIP, checked",
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
    layout: str = "tiled",
) -> BenchOutcome:
    """Every rank projects its own random tokens with its own weights, and compares with numpy in float64."""
    return projections("qkv_gemm_multi_pe", rank, planned(scale, seq, cubes, pes, dtype, layout))
