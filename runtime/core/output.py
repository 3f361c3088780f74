"""Writes the output of a command: lines to the standard output, and whole files.

A result must not be lost because one of its outputs cannot be written: `UnwrittenOutputs` collects
the errors, so that the other outputs are still written, and raises one error which names them all.
"""

import io
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from runtime.core.errors import KernbenchError, UsageError

STDOUT = "the standard output"


class OutputError(KernbenchError):
    """Outputs cannot be written. Fields: for each output, its name and the reason."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "cannot write " + ", nor ".join(f"{name}: {why}" for name, why in self.problems)


class ReaderEndedError(KernbenchError):
    """The reader of the standard output has ended, for example `head`. It needs no message."""


class UnwrittenOutputs:
    """The errors of several outputs: each is written within `attempt()`, then `check` raises."""

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str], None] = {}
        self._broken_pipe: BrokenPipeError | None = None

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Catch and store the error of one output."""
        try:
            yield
        except OutputError as error:
            # A problem of the standard output may occur several times.
            self._problems |= dict.fromkeys(error.problems)
        except BrokenPipeError as error:
            self._broken_pipe = error

    @property
    def error(self) -> OutputError | BrokenPipeError | None:
        """The error of all outputs that were not written."""
        # A broken pipe needs no message: the reader has ended, for example `head`.
        return OutputError(*self._problems) if self._problems else self._broken_pipe

    def check(self) -> None:
        """Raise `error`, if there is one."""
        if self.error is not None:
            raise self.error


def print_lines(lines: Iterable[str]) -> None:
    """Print `lines` to the standard output. Raises `OutputError`, or `BrokenPipeError`."""
    # All lines first: an error in their computation is no error of the output.
    text = "".join(f"{line}\n" for line in lines)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError((STDOUT, _reason(error))) from error


def write_whole_lines() -> None:
    """Write each line of the standard output and error at once, when it is complete or flushed.

    An unbuffered stream writes a line and its end separately. Where processes share a pipe, as the
    workers of torchrun do, the line of another one may come between the two.
    """
    for stream in (sys.stdout, sys.stderr):
        # None where the stream is closed; a program may have put an object of its own there.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)


class OutputFile:
    """A file that is written in pieces within a `with` block.

    An error in the block leaves no part of the file: a truncated file must not be taken for a
    complete one. `OutputError` if the file cannot be opened, written or closed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._errors():
            self._file = path.open("wb")

    def write(self, content: bytes) -> None:
        """Append `content`."""
        try:
            self._file.write(content)
        except OSError as error:
            raise self._problem(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            with self._errors():
                self._file.close()
            return
        # The first error is the cause; closing writes what is buffered, which may fail again.
        with suppress(OSError):
            self._file.close()
        self._remove()

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            self._remove()
            raise self._problem(error) from error

    def _problem(self, error: OSError) -> OutputError:
        return OutputError((str(self._path), _reason(error)))

    def _remove(self) -> None:
        # Devices are not removed.
        with suppress(OSError):
            if self._path.is_file():
                self._path.unlink()


def write_output(path: Path, content: bytes) -> None:
    """Write a whole file. Raises `OutputError`; then no part of the file remains."""
    with OutputFile(path) as file:
        file.write(content)


def clear_output(path: Path, option: str) -> None:
    """Create or empty the file which `option` names, before a long run starts.

    Raises `UsageError` if it cannot be written.
    """
    try:
        # The reader of a pipe would take the end of this write for the end of the output.
        if path.is_file() or path.is_dir() or not path.exists():
            path.write_bytes(b"")
    except OSError as error:
        raise UsageError(f"{option}: cannot write {path}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
