"""The benches that come with kernbench, registered with `@bench` or `@study`."""

from importlib import import_module

MODULES = (
    "benches.ccl_algorithms.study",
    "benches.ccl_allreduce",
    "benches.gemm_single_pe",
    "benches.milestone_1h_ccl.study",
    "benches.milestone_1h_gemm.study",
    "benches.qkv_gemm",
    "benches.qkv_gemm_multi_pe",
    "benches.va_offset_verify",
)


def load_all() -> None:
    """Import every bench, so that the registry knows them."""
    for module in MODULES:
        import_module(module)
