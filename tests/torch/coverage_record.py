"""The record of an unfinished run of `coverage_table`: what its programs have measured, so that a
run which is cut goes on where it ended.

A program takes the names of items as its last arguments and prints a line `= name | ...` for each
of them. The lines are kept under a digest of the sources: those of another tree do not count.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Lock
from time import monotonic

import torch

ROOT = Path(__file__).parents[2]
SOURCES = ("coordinator", "kernbench", "runtime", "sip_node", "tests/torch/programs")
SUFFIXES = {".cpp", ".h", ".pxd", ".py", ".pyx", ".so", ".toml", ".yaml"}
AT_ONCE = 2
"""Programs that run at a time."""
PROGRESS_S = 15
"""Least seconds between two lines of progress of a part."""
_LINE = re.compile(r"^= (.+?) \|.*\n$")
_TAIL = 40
"""Lines of the output that an error shows."""


@dataclass(frozen=True)
class CoverageProgram:
    """A command that measures the named items."""

    command: Sequence[str]
    items: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class ProgramError(Exception):
    """A program of a part has ended with an error, or without all of its items."""

    def __init__(self, part: str, missing: Sequence[str], output: str) -> None:
        super().__init__(part, missing, output)

    def __str__(self) -> str:
        part, missing, output = self.args
        return f"{part}: the program ended without {', '.join(missing[:3]) or 'an error'}\n{output}"


class CoverageRecord:
    """The lines of each part in a folder of their own, and files beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._begin_s = monotonic()
        self._reported_s = dict[str, float]()
        folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of_sources(cls, parent: Path) -> "CoverageRecord":
        """The record of the present sources; those of others are removed."""
        own = parent / _digest()
        for other in parent.glob("*"):
            if other != own:
                shutil.rmtree(other)
        return cls(own)

    @property
    def elapsed_min(self) -> float:
        """Minutes since the begin of this run."""
        return (monotonic() - self._begin_s) / 60

    def lines(self, part: str, programs: Sequence[CoverageProgram]) -> dict[str, str]:
        """The line of each item: the programs measure those that the record lacks."""
        items = [item for program in programs for item in program.items]
        known = self._known(part)
        remaining = [
            replace(each, items=[item for item in each.items if item not in known])
            for each in programs
        ]
        self._report(part, len(known), len(items), "so far" if known else "begins")
        running = list[subprocess.Popen[str]]()
        with ThreadPoolExecutor(AT_ONCE) as threads:
            ends = [
                threads.submit(self._measure, part, each, len(items), running)
                for each in remaining
                if each.items
            ]
            try:
                failures = [each.exception() for each in ends]
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                for each in running:
                    if each.poll() is None:
                        os.killpg(each.pid, signal.SIGTERM)
                raise
        for failure in failures:
            if failure is not None:
                raise failure
        return {each: line for each, line in self._known(part).items() if each in items}

    def add(self, part: str, name: str, line: str, count: int) -> None:
        """Keep the line of an item, of `count` ones; report it after a while without a report."""
        with self._lock, (self.folder / part).open("a", encoding="utf-8") as file:
            file.write(line)
        if monotonic() - self._reported_s.get(part, 0.0) > PROGRESS_S:
            self._report(part, len(self._known(part)), count, name)

    def note(self, text: str) -> None:
        """Print a line about what is left out."""
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def clear(self, parts: Iterable[str]) -> None:
        """Remove the lines of some parts, whose tables are written."""
        for part in parts:
            for each in self.folder.glob(f"{part}*"):
                each.unlink()

    def _known(self, part: str) -> dict[str, str]:
        file = self.folder / part
        text = file.read_text("utf-8") if file.exists() else ""
        matches = map(_LINE.match, text.splitlines(keepends=True))
        return {match[1]: match[0] for match in matches if match}

    def _report(self, part: str, known: int, count: int, name: str) -> None:
        self._reported_s[part] = monotonic()
        text = f"{self.elapsed_min:5.1f} min  {part}: {known} of {count}, {name}\n"
        sys.stdout.write(text)
        sys.stdout.flush()

    def _measure(
        self,
        part: str,
        program: CoverageProgram,
        count: int,
        running: list[subprocess.Popen[str]],
    ) -> None:
        missing = dict.fromkeys(program.items)
        tail = deque[str](maxlen=_TAIL)
        with TemporaryDirectory() as folder, TemporaryFile("w+", encoding="utf-8") as errors:
            with subprocess.Popen(
                [*program.command, *program.items],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
                # A group of its own: what a program has started is ended with it.
                start_new_session=True,
                env={**os.environ, **program.environment},
            ) as process:
                running.append(process)
                assert process.stdout is not None
                for line in process.stdout:
                    tail.append(line)
                    if (match := _LINE.match(line)) and match[1] in missing:
                        self.add(part, match[1], line, count)
                        del missing[match[1]]
            if process.returncode or missing:
                errors.seek(0)
                tail.extend(errors)
                raise ProgramError(part, list(missing), "".join(tail))


def _digest() -> str:
    digest = hashlib.sha256(torch.__version__.encode())
    for folder in SOURCES:
        for each in sorted((ROOT / folder).rglob("*")):
            if each.suffix in SUFFIXES:
                digest.update(f"{each.relative_to(ROOT)}\n".encode() + each.read_bytes())
    return digest.hexdigest()[:16]
