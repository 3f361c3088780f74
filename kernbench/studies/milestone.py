"""What all studies do alike: where their files go, the sweep that they simulate, and the fast way that simulates nothing."""

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from kernbench.studies import sweep_file
from runtime.core.bench_registry import StudyOptions
from runtime.core.config_file import default_file, read_text
from runtime.core.errors import UsageError

P = TypeVar("P")
S = TypeVar("S", bound=Struct)

DEFAULT_OUT = Path("benches/1H_milestone_output")
"""Below the current directory."""
FAST = "MILESTONE_FAST"
"""Environment variable: `1` draws and prints what is in the file, without simulating."""


def is_fast(options: StudyOptions, file: Path, word: str, *, given: bool) -> bool:
    """Whether the environment asks for the fast way, which takes all from `file`.

    Raises `UsageError` where that is not clear, and for a topology file or an option `word` that is given to the fast way.
    """
    value = os.environ.get(FAST, "")
    if value not in ("", "0", "1"):
        raise UsageError(
            f"{FAST} is {value!r}: 1 draws the figures again without simulating, 0 or nothing simulates"
        )
    if value != "1":
        return False
    for option, is_given in (("--topology", options.topology is not None), (word, given)):
        if is_given:
            raise UsageError(
                f"{option} with {FAST}=1: nothing is simulated, the figures show what is in {file.name}"
            )
    return True


def simulated(
    options: StudyOptions,
    file: Path,
    plan: Callable[[str, str], P],
    simulate: Callable[[P, int, float], S],
) -> S:
    """The sweep that is simulated now, and written to `file`; its directory is made if it is missing.

    `plan` gets the name and the content of the topology file, `simulate` the plan, the number of worker processes and their
    timeout in seconds. Raises what these two raise, and `UsageError` where the file cannot be written.
    """
    source = options.topology or default_file("topology.yaml")
    planned = plan(str(options.topology or source.name), read_text(source))
    _make(file.parent)
    sweep = simulate(planned, options.procs or os.cpu_count() or 1, options.timeout_s)
    sweep_file.write(file, sweep)
    return sweep


def listed(files: Sequence[Path], column: int) -> Iterator[str]:
    """A line for each file, all names at `column`."""
    for number, file in enumerate(files):
        yield f"{'' if number else 'files':<{column}}{file}"


def drawing(module: str) -> Callable[[Any, Path], list[Path]]:
    """The function `draw` of a module that needs matplotlib; `UsageError` that says what to install where it is missing."""
    try:
        return import_module(module).draw
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise UsageError(
            "the figures need matplotlib, the extra `plots`: pip install 'kernbench[plots]'"
        ) from error


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: cannot write to {directory}: {error.strerror}") from error
