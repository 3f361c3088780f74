"""Finds the bench or study that `--bench` names: by name, by number, or in a module of the user."""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from runtime.core.bench_registry import Bench, Entry, registered
from runtime.core.code.bench_source import import_source, is_file, split_source
from runtime.core.code.package_check import is_own
from runtime.core.errors import UsageError, nearest


def find_entry(name: str, entries: Callable[[], Sequence[Entry]]) -> Entry:
    """The bench or study `name`: a name or a number of `entries`, `FILE.py:name` or `module:name`.

    Raises `UsageError` that names the nearest one.
    """
    source, own_name = split_source(name)
    if source:
        return _entry_of_module(source, own_name)
    if is_file(name):
        raise UsageError(f"--bench {name}: add the name of a bench in it, {name}:NAME")
    known = entries()
    if name.isdecimal():
        if 1 <= int(name) <= len(known):
            return known[int(name) - 1]
        raise UsageError(f"--bench {name}: benches have numbers from 1 to {len(known)}, see --list")
    for entry in known:
        if entry.name == name:
            return entry
    raise UsageError(f"unknown bench {name!r}{nearest(name, [entry.name for entry in known])}")


def _entry_of_module(source: str, name: str) -> Entry:
    """The entry `name`, by its registered name or that of its function, in a module of the user."""
    module = _imported(source)
    entries = [entry for entry in registered() if _is_of(entry, module)]
    for entry in entries:
        if name in (entry.name, entry.function.__name__):
            return _located(entry, source)
    if name in vars(module):
        raise UsageError(
            f"--bench: {name} of {source} is no bench: decorate it with @bench(name, description)"
        )
    if not entries:
        raise UsageError(f"--bench: {source} has no bench: decorate a function with @bench")
    names = {each for entry in entries for each in (entry.name, entry.function.__name__)}
    raise UsageError(f"--bench: {source} has no bench {name!r}{nearest(name, names)}")


def _imported(source: str) -> ModuleType:
    try:
        return import_source(source)
    except UsageError as error:
        raise UsageError(f"--bench: {error}") from error
    except Exception as error:
        # The module itself or one of its packages is missing, not one that it imports.
        if isinstance(error, ModuleNotFoundError) and source.startswith(error.name or "\0"):
            raise UsageError(
                f"--bench: no module {error.name!r}; a file is given with its suffix .py"
            ) from error
        raise UsageError(
            f"--bench: {source} cannot be imported: {type(error).__name__}: {error}"
            f"{_user_line(error)}"
        ) from error


def _user_line(error: Exception) -> str:
    """` (FILE:LINE)` of the innermost frame that is not of kernbench or Python, else ""."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        # The import system has frames of files such as `<frozen importlib._bootstrap>`.
        if not frame.filename.startswith("<") and not is_own(Path(frame.filename))
    ]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _is_of(entry: Entry, module: ModuleType) -> bool:
    """Whether the module defines the entry, or has it by an import."""
    return vars(module).get(entry.function.__name__) is entry.function


def _located(entry: Entry, source: str) -> Entry:
    """The entry with a program that the ranks can import: a file by its absolute path."""
    if isinstance(entry, Bench) and is_file(source):
        program = f"{Path(source).resolve()}:{entry.function.__qualname__}"
        return replace(entry, program=program)
    return entry
