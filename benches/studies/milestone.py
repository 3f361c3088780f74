"""What all milestone studies do alike: where their files go, and the fast way that simulates nothing."""

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from runtime.errors import UsageError

DEFAULT_OUT = Path("benches/1H_milestone_output")
"""Below the current directory."""
FAST = "MILESTONE_FAST"
"""Environment variable: `1` draws and prints what is in the file, without simulating."""


def is_fast() -> bool:
    """Whether the environment asks for the fast way; `UsageError` where it is not clear."""
    value = os.environ.get(FAST, "")
    if value not in ("", "0", "1"):
        raise UsageError(f"{FAST} is {value!r}: 1 draws the figures again without simulating, 0 or nothing simulates")
    return value == "1"


def refuse_choices(file: str, choices: Iterable[tuple[str, bool]]) -> None:
    """Raise `UsageError` for the first option that is given though the fast way takes all from `file`."""
    for word, given in choices:
        if given:
            raise UsageError(f"{word} with {FAST}=1: nothing is simulated, the figures show what is in {file}")


def made(directory: Path) -> Path:
    """The directory, which is there now; `UsageError` where that is not possible."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: cannot write to {directory}: {error.strerror}") from error
    return directory


def drawing(module: str) -> Callable[[Any, Path], list[Path]]:
    """The function `draw` of a module that needs matplotlib; `UsageError` that says what to install where it is missing."""
    try:
        return import_module(module).draw
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise UsageError("the figures need matplotlib, the extra `plots`: pip install 'kernbench[plots]'") from error
