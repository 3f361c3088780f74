"""The benches that come with kernbench; packages of others add theirs by an entry point.

A package that declares entry points in the group `kernbench.benches` has its benches and studies
in `--list`. Each entry point names a module that registers them, or a function with `@bench`:

    [project.entry-points."kernbench.benches"]
    my-bench = "my_package.my_module"
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

# Nothing else is imported with this package: the command line needs the names early.
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from runtime.core.bench_registry import Entry

ENTRY_POINT_GROUP = "kernbench.benches"
BENCHES = (
    "ccl-allreduce",
    "congestion",
    "gemm-single-pe",
    "ipcq-allreduce",
    "qkv-gemm",
    "qkv-gemm-multi-pe",
    "tp-attention-block",
    "tp-mlp",
    "va-offset-verify",
)
"""The benches of kernbench; each is registered by the module of its name in this package."""
STUDIES = ("kernbench.studies.catalogue",)
"""The modules that register the studies of kernbench."""


def load_bench(name: str) -> "Entry | None":
    """The bench `name` of kernbench, None if it has none; other benches are not imported."""
    if name not in BENCHES:
        return None
    from runtime.core.bench_registry import registered

    import_module(_module(name))
    return next(entry for entry in registered() if entry.name == name)


def load_entries() -> "Sequence[Entry]":
    """All benches and studies: those of kernbench and those of entry points, by name."""
    from importlib.metadata import entry_points

    from runtime.core.bench_registry import registered

    for module in (*map(_module, BENCHES), *STUDIES):
        import_module(module)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        _load(point)
    return registered()


def _module(name: str) -> str:
    return f"{__name__}.{name.replace('-', '_')}"


def _load(point: "EntryPoint") -> None:
    # One line for a package that cannot be imported: its traceback is of no use to the user.
    try:
        point.load()
    except Exception as error:
        from runtime.core.errors import UsageError

        package = point.dist.name if point.dist else "an unknown package"
        raise UsageError(
            f"entry point {point.name!r} of {package} cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error
