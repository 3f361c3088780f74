"""One simulation, as a command line requests it."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path

from kernbench.command.options import SimulationOptions
from runtime.core.bench_registry import Bench, Scalar
from runtime.core.errors import UsageError


@dataclass(frozen=True)
class RunRequest:
    """One simulation: of a bench with its flags, or of a script or a module with its arguments.

    `checks` is whether the run is checked for races behind its report.
    """

    options: SimulationOptions
    bench: Bench | None = None
    flags: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    script: Path | None = None
    module: str = ""
    argv: tuple[str, ...] = ()
    as_cuda: bool = False
    checks: bool = False


def module_name(name: str) -> str:
    """The name of a module, of which the first part is found as a rank would find it; `UsageError`
    if it is not.
    """
    top = name.partition(".")[0]
    if name.endswith(".py"):
        raise UsageError(f"-m {name}: a module is given without .py, or a script without -m")
    if PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is None:
        raise UsageError(f"-m {name}: there is no module {top!r} here or on the import path")
    return name
