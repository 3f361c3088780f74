"""The benches that come with kernbench, registered with `@bench` or `@study`."""

from importlib import import_module

MODULES = (
    "kernbench.studies.ccl_algorithms.study",
    "kernbench.benches.ccl_allreduce",
    "kernbench.benches.gemm_single_pe",
    "kernbench.studies.milestone_1h_ccl.study",
    "kernbench.studies.milestone_1h_gemm.study",
    "kernbench.benches.qkv_gemm",
    "kernbench.benches.qkv_gemm_multi_pe",
    "kernbench.benches.va_offset_verify",
)


def load_all() -> None:
    """Import every bench, so that the registry knows them."""
    for module in MODULES:
        import_module(module)
