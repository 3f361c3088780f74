"""The registry of benches: a bench is a rank program with a name, and its keyword-only parameters are its flags."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
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


class BenchOutcome(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What a bench returns on every rank: what was checked (`label`), how many checks held and failed, and its table.

    `unchecked` are those that a run without data cannot make.
    """

    label: str
    ok: int
    wrong: int
    rows: tuple[PerfRow, ...] = ()
    unchecked: int = 0


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


_REGISTRY: dict[str, Bench] = {}


def bench(name: str, description: str, **help_texts: str) -> Callable[[_F], _F]:
    """Register the decorated rank program `f(rank, *, flag=default, ...) -> BenchOutcome` under a kebab-case name.

    Each keyword-only parameter must have a default and a type of bool, int, float or str; `help_texts` describe them.
    """

    def register(function: _F) -> _F:
        hints = get_type_hints(function)
        flags = tuple(
            Flag(parameter.name, hints[parameter.name], parameter.default, help_texts.get(parameter.name, ""))
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        )
        program = f"{function.__module__}:{function.__qualname__}"
        _REGISTRY[name] = Bench(name, description, program, flags, function)
        return function

    return register


def registered() -> tuple[Bench, ...]:
    """Every bench whose module has been imported, by name: a bench's number is its place in this order, from 1."""
    return tuple(_REGISTRY[name] for name in sorted(_REGISTRY))
