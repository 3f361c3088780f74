"""The registry of benches and studies: programs with names, whose keyword-only parameters are their flags.

A bench is a rank program: one run of it is one simulation. A study runs beside the simulations that it makes, many of them.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from msgspec import Struct

Scalar = bool | int | float | str
"""What a flag can be."""

_F = TypeVar("_F", bound=Callable[..., Any])


class PerfRow(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One line of the table of a collective, in the terms of nccl-tests; `time_ps` is simulated.

    `wrong` counts wrong elements; None in a run without data, where nobody can know.
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
    """What was measured, the simulated time it took, and figures that follow from the time."""

    labels: tuple[str | int, ...]
    time_ps: int
    values: tuple[str | int | float, ...]


class Table(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A table of a bench's own. Every rank returns the same labels; the report shows each row as the slowest rank has it."""

    labels: tuple[Column, ...]
    values: tuple[Column, ...]
    rows: tuple[TableRow, ...]


class BenchOutcome(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What a bench returns on every rank: what was checked (`label`), how many checks held and failed, and its table.

    The table has the `rows` of a collective, or is a `table` of the bench's own. `unchecked` are the checks that a run without
    data cannot make.
    """

    label: str
    ok: int
    wrong: int
    rows: tuple[PerfRow, ...] = ()
    unchecked: int = 0
    table: Table | None = None


@dataclass(frozen=True)
class Flag:
    """One flag of a bench: `--name`, its type and default, and the sentence that `--help` shows."""

    name: str
    kind: type
    default: Scalar
    help: str


@dataclass(frozen=True)
class Bench:
    """A registered bench. `program` is its import path, `module:function`."""

    name: str
    description: str
    program: str
    flags: tuple[Flag, ...]
    function: Callable[..., BenchOutcome]


@dataclass(frozen=True)
class StudyOptions:
    """The options of the command line that a study takes; None leaves the choice to the study.

    `procs` is how many worker processes simulate, `timeout_s` how long all may go without a result, 0 for ever.
    """

    topology: Path | None = None
    procs: int | None = None
    timeout_s: float = 0.0
    out: Path | None = None


@dataclass(frozen=True)
class Study:
    """A registered study: `function(options, **flags)` runs it and says whether all that it checks holds."""

    name: str
    description: str
    flags: tuple[Flag, ...]
    function: Callable[..., bool]


Entry = Bench | Study
"""What the registry holds."""

_REGISTRY: dict[str, Entry] = {}


def bench(name: str, description: str, **help_texts: str) -> Callable[[_F], _F]:
    """Register the decorated rank program `f(rank, *, flag=default, ...) -> BenchOutcome` under a kebab-case name.

    Each keyword-only parameter must have a default and a type of bool, int, float or str; `help_texts` describe them.
    """

    def register(function: _F) -> _F:
        program = f"{function.__module__}:{function.__qualname__}"
        _REGISTRY[name] = Bench(name, description, program, _flags(function, help_texts), function)
        return function

    return register


def study(name: str, description: str, **help_texts: str) -> Callable[[_F], _F]:
    """Register the decorated `f(options: StudyOptions, *, flag=default, ...) -> bool` under a kebab-case name.

    It runs in the process of the command line. Its flags are as those of a bench.
    """

    def register(function: _F) -> _F:
        _REGISTRY[name] = Study(name, description, _flags(function, help_texts), function)
        return function

    return register


def registered() -> tuple[Entry, ...]:
    """All whose modules have been imported, by name: a number is a place in this order, from 1."""
    return tuple(_REGISTRY[name] for name in sorted(_REGISTRY))


def _flags(function: Callable[..., Any], help_texts: Mapping[str, str]) -> tuple[Flag, ...]:
    hints = get_type_hints(function)
    return tuple(
        Flag(
            parameter.name,
            hints[parameter.name],
            parameter.default,
            help_texts.get(parameter.name, ""),
        )
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    )
