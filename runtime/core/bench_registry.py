"""The registry of benches and studies: named programs whose keyword-only parameters are flags.

A bench is a rank program: one run of it is one simulation. A study runs in the process of the
command line and starts many simulations, for example a sweep.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from msgspec import Struct

Scalar = bool | int | float | str
"""The type of a flag's value."""

_F = TypeVar("_F", bound=Callable[..., Any])


class PerfRow(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One row of the table of a collective, with the columns of nccl-tests; `time_ps` is simulated.

    `wrong` counts wrong elements. It is None in a run without data, which has nothing to check.
    """

    size_bytes: int
    count: int
    dtype: str
    redop: str
    time_ps: int
    algbw_gbs: float
    busbw_gbs: float
    wrong: int | None


class Column(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The heading of a column: its name, and the unit of its numbers."""

    name: str
    unit: str = ""


class TableRow(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The labels of a measurement, its simulated time, and values derived from the time."""

    labels: tuple[str | int, ...]
    time_ps: int
    values: tuple[str | int | float, ...]


class Table(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The table that a bench returns; `labels` and `values` are the headings of its columns.

    Every rank returns the same labels; the report shows each row of the slowest rank.
    """

    labels: tuple[Column, ...]
    values: tuple[Column, ...]
    rows: tuple[TableRow, ...]


class BenchOutcome(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The return value of a bench on every rank: the number of passed and failed checks, a table.

    `label` names what was checked. `unchecked` counts the checks that a run without data cannot
    make. The table has either the `rows` of a collective or the columns of `table`.
    """

    label: str
    ok: int
    wrong: int
    rows: tuple[PerfRow, ...] = ()
    unchecked: int = 0
    table: Table | None = None


@dataclass(frozen=True)
class Flag:
    """One flag of a bench or study: `--name`, its type and default, and the text of `--help`."""

    name: str
    kind: type
    default: Scalar
    help: str

    @property
    def option(self) -> str:
        """The flag as it is written on the command line."""
        return f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True)
class Bench:
    """A registered bench. `program` is its import path, `module:function`.

    `check(ccl, **flags)` raises `UsageError` for wrong flags before a process starts; `ccl` is the
    configuration of collectives.
    """

    name: str
    description: str
    program: str
    flags: tuple[Flag, ...]
    function: Callable[..., BenchOutcome]
    check: Callable[..., None] | None = None


@dataclass(frozen=True)
class StudyOptions:
    """The options of the command line that a study takes; None leaves the choice to the study.

    `on` names the executor that simulates, `procs` is the number of local worker processes.
    `timeout_s` limits the time without any new result, `point_timeout_s` that of one simulation,
    and `point_memory_bytes` its memory; 0 means no limit. `resume` keeps the rows of an earlier
    start; None does so if that has not come to its end. `changed` are the flags of the study, as
    `--name`, whose values are not their defaults.
    """

    topology: Path | None = None
    procs: int | None = None
    timeout_s: float = 0.0
    out: Path | None = None
    on: str = "local"
    resume: bool | None = None
    point_timeout_s: float = 0.0
    point_memory_bytes: int = 0
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """A registered study: `function(options, **flags)` returns whether all of its checks pass."""

    name: str
    description: str
    flags: tuple[Flag, ...]
    function: Callable[..., bool]


Entry = Bench | Study
"""An entry of the registry."""

_REGISTRY: dict[str, Entry] = {}


def bench(
    name: str, description: str, check: Callable[..., None] | None = None, /, **help_texts: str
) -> Callable[[_F], _F]:
    """Register the decorated rank program under a kebab-case name.

    The program is `f(rank, *, flag=default, ...) -> BenchOutcome`. Each keyword-only parameter has
    a default and the type bool, int, float or str; `help_texts` describe the parameters. `check` is
    `Bench.check`.
    """

    def register(function: _F) -> _F:
        _REGISTRY[name] = Bench(
            name=name,
            description=description,
            # Processes import the bench by this path; functions are not pickled.
            program=f"{function.__module__}:{function.__qualname__}",
            flags=_flags(function, help_texts),
            function=function,
            check=check,
        )
        return function

    return register


def study(name: str, description: str, /, **help_texts: str) -> Callable[[_F], _F]:
    """Register the decorated `f(options: StudyOptions, *, flag=default, ...) -> bool`.

    It runs in the process of the command line. Its flags follow the rules of `bench`.
    """

    def register(function: _F) -> _F:
        _REGISTRY[name] = Study(name, description, _flags(function, help_texts), function)
        return function

    return register


def register(entry: Entry) -> None:
    """Add an entry, for example of a package that declares its flags in another form."""
    _REGISTRY[entry.name] = entry


def registered() -> tuple[Entry, ...]:
    """The entries of all imported modules in the order of their names.

    Entry number n of `--list`, counted from 1, is the n-th of them.
    """
    # By name, not by import order: the numbers of `--list` must not change with the imports.
    return tuple(_REGISTRY[name] for name in sorted(_REGISTRY))


def _flags(function: Callable[..., Any], help_texts: Mapping[str, str]) -> tuple[Flag, ...]:
    """The flags of a bench or study; raises `TypeError` for a parameter that cannot be one."""
    hints = get_type_hints(function)
    flags: list[Flag] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        subject = f"{function.__name__}: parameter {name!r}"
        if hints.get(name) not in get_args(Scalar):
            raise TypeError(f"{subject} is a flag, so its type must be bool, int, float or str")
        if parameter.default is inspect.Parameter.empty:
            raise TypeError(f"{subject} is a flag, so it needs a default")
        flags.append(Flag(name, hints[name], parameter.default, help_texts.get(name, "")))
    unknown = set(help_texts) - {flag.name for flag in flags}
    if unknown:
        raise TypeError(f"{function.__name__} has no keyword-only parameter {min(unknown)!r}")
    return tuple(flags)
