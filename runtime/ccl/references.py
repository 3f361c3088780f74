"""Checks what the algorithms of `ccl.yaml` refer to: modules, and functions by registry key or
import path.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from runtime.ccl.import_paths import ImportPathError, check_attribute, module_names
from runtime.ccl.mappers import MAPPERS
from runtime.ccl.topologies import TOPOLOGIES
from runtime.ccl.validators import VALIDATORS
from runtime.core.errors import nearest

COLLECTIVES = (
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "all_gather_into_tensor",
    "reduce_scatter_tensor",
    "all_to_all_single",
    "all_to_all",
    "gather",
    "scatter",
)
"""The collectives of which an algorithm may have a kernel, which is a function of its module with
that name.
"""

POINT_TO_POINT = "point_to_point"
"""The algorithm of send and receive. Its queues connect every rank of a group with every other
one.
"""

PAIRWISE = "pairwise"
"""The algorithm of all-to-all with parts of any sizes. Its queues connect every two ranks, too."""

SYSTEM = "system"
"""The topology key that stands for `system.sips.topology` of the topology file."""


class TableReferences(Protocol):
    """References of the section of a queue table to code outside the file."""

    @property
    def topology(self) -> str:
        """A registry key or the import path of a function."""
        ...

    @property
    def mapper(self) -> str:
        """A registry key or the import path of a function."""
        ...


class AlgorithmReferences(TableReferences, Protocol):
    """References of the section of an algorithm to code outside the file."""

    @property
    def module(self) -> str:
        """The import path of a module."""
        ...

    @property
    def validator(self) -> str:
        """A registry key or the import path of a function."""
        ...


def unresolved_references(
    algorithms: Mapping[str, AlgorithmReferences],
    tables: Mapping[str, TableReferences],
    directories: Sequence[str] = (),
) -> Iterator[tuple[str, str]]:
    """(key path, problem) of every reference that does not exist or lacks what it must define.

    `tables` are the queue tables of users' kernels. `directories` are searched for modules before
    the import path of this process.
    """
    for name, algorithm in algorithms.items():
        section = f"algorithms.{name}"
        for problem in _module_problems(name, algorithm.module, directories):
            yield f"{section}.module", problem
        yield from _table_problems(section, algorithm, directories)
        for problem in _function_problems(algorithm.validator, VALIDATORS, directories):
            yield f"{section}.validator", problem
    for name, table in tables.items():
        yield from _table_problems(f"queues.{name}", table, directories)


def referenced_modules(
    algorithms: Iterable[AlgorithmReferences], tables: Iterable[TableReferences]
) -> tuple[str, ...]:
    """The modules that algorithms and queue tables name, each once, in the order of the file."""
    modules = dict[str, None]()
    for algorithm in algorithms:
        modules[algorithm.module] = None
        for reference in (algorithm.topology, algorithm.mapper, algorithm.validator):
            modules[_module(reference)] = None
    for table in tables:
        for reference in (table.topology, table.mapper):
            modules[_module(reference)] = None
    # A name without a separator is a registry key and has no module.
    return tuple(module for module in modules if module)


def _module(reference: str) -> str:
    return reference.rpartition(":" if ":" in reference else ".")[0]


def _table_problems(
    section: str, table: TableReferences, directories: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for problem in _function_problems(table.topology, {SYSTEM, *TOPOLOGIES}, directories):
        yield f"{section}.topology", problem
    for problem in _function_problems(table.mapper, MAPPERS, directories):
        yield f"{section}.mapper", problem


def _module_problems(algorithm: str, module: str, directories: Sequence[str]) -> Iterator[str]:
    try:
        names = module_names(module, directories)
    except ImportPathError as error:
        yield f"{module!r} cannot be imported: {error}"
        return
    # The kernels of send and receive are always those of kernbench, called without `arguments`.
    if names is None or algorithm == POINT_TO_POINT:
        return
    if "arguments" not in names:
        yield f"{module!r} has no function arguments(group, itemsize)"
    if names.isdisjoint(COLLECTIVES):
        yield f"{module!r} has no kernel, a function named like one of {', '.join(COLLECTIVES)}"


def _function_problems(
    reference: str, registry: Collection[str], directories: Sequence[str]
) -> Iterator[str]:
    if reference in registry:
        return
    # A name without a separator cannot be an import path: suggest the nearest key.
    if "." not in reference and ":" not in reference:
        yield f"{reference!r} is not known{nearest(reference, registry)}"
        return
    try:
        check_attribute(reference, directories)
    except ImportPathError as error:
        yield f"{reference!r} cannot be imported: {error}"
