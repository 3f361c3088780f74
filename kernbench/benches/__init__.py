"""The benches that come with kernbench; packages of others add theirs by an entry point.

A package that declares entry points in the group `kernbench.benches` has its benches and studies
in `--list`. Each entry point names a module that registers them, or a function with `@bench`:

    [project.entry-points."kernbench.benches"]
    my-bench = "my_package.my_module"
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from runtime.core.bench_registry import Entry, registered
from runtime.core.errors import UsageError

ENTRY_POINT_GROUP = "kernbench.benches"
MODULES = (
    "kernbench.studies.ccl_algorithms.study",
    "kernbench.benches.ccl_allreduce",
    "kernbench.benches.congestion",
    "kernbench.benches.gemm_single_pe",
    "kernbench.studies.milestone_1h_ccl.study",
    "kernbench.studies.milestone_1h_gemm.study",
    "kernbench.benches.qkv_gemm",
    "kernbench.benches.qkv_gemm_multi_pe",
    "kernbench.benches.ipcq_allreduce",
    "kernbench.benches.tp_attention_block",
    "kernbench.benches.tp_mlp",
    "kernbench.benches.va_offset_verify",
)
"""The modules that register the benches and studies of kernbench."""


def load_entries() -> Sequence[Entry]:
    """All benches and studies: those of kernbench and those of entry points, by name."""
    for module in MODULES:
        import_module(module)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        _load(point)
    return registered()


def _load(point: EntryPoint) -> None:
    # One line for a package that cannot be imported: its traceback is of no use to the user.
    try:
        point.load()
    except Exception as error:
        package = point.dist.name if point.dist else "an unknown package"
        raise UsageError(
            f"entry point {point.name!r} of {package} cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error
