"""The benches that come with kernbench: one file each, registered with `@bench`."""

from importlib import import_module

MODULES = ("benches.ccl_allreduce",)


def load_all() -> None:
    """Import every bench, so that the registry knows them."""
    for module in MODULES:
        import_module(module)
