"""Transcripts: fenced blocks of a page in which lines that start with `$ ` are commands.

The lines below a command are what it prints. `…` stands for any text within a line, and for any
number of lines on a line of its own. A block that cannot run has an HTML comment before it:
`<!-- not run: the reason -->`. `python -m tests.renew_transcripts` writes what is printed now.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

from tests.support.runs import called

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
NIGHTLY = re.compile(
    r" validate$|--bench (?:milestone|ccl-algorithms)| -e \d{3,}K\b|--bench \S+ --sips 4"
    r"|sweep examples/|--metric algbw_gbs"
)
"""Commands that take more than about five seconds: `make test-nightly` runs them."""
TIMEOUT_S = 600
NOT_COPIED = (".*", "runs", "build", "dist", "tests", "1H_milestone_output")
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+) -->")
NORMALISED = (
    # Wall time, rounds and messages of a run depend on the machine and its load: a message carries
    # the packets of a transfer that cross in one round.
    (re.compile(r"^wall time .*"), "wall time"),
    (re.compile(r"[\d,]+ rounds"), "N rounds"),
    (re.compile(r"[\d,]+ messages"), "N messages"),
    (re.compile(r"[\d,]+ null messages"), "N null messages"),
    (re.compile(r"\b\d+(?:\.\d+)? s\b"), "N s"),
    # Runs are numbered within the directory of the user.
    (re.compile(r"\bruns/\d{4}-"), "runs/NNNN-"),
)
CONFIGURATION = re.compile(r"\b(config )[0-9a-f]{12}\b")
RANK = re.compile(r"rank \d+\b")
FIGURE = re.compile(r"\d[\d,]*\.\d+")


_PLAIN = re.compile(r"python launch\.py (?P<words>(?!.*\bruns/)[^|&;<>$`\\\n]+)")
"""A command for which a user needs no shell.

The lines of a recorded run's program are named from the checkout whose code has run.
"""


@dataclass(frozen=True)
class Step:
    """A command of a page and the lines which the page shows below it, from line `at` on."""

    command: str
    shown: tuple[str, ...]
    at: int = field(default=0, compare=False)

    @property
    def writes_a_file(self) -> bool:
        """Whether the command prepares a file for later ones, and simulates nothing."""
        return not re.search(r"\b(?:python|kernbench|make) ", self.command)


@dataclass(frozen=True)
class Block:
    """A fenced block of `page` with at least one command; `line` is that of its first command.

    `before` are the commands further up the page that write files.
    """

    page: str
    line: int
    steps: tuple[Step, ...]
    not_run: str
    before: tuple[str, ...]

    @property
    def is_nightly(self) -> bool:
        """Whether a command of it takes long."""
        return any(NIGHTLY.search(step.command) for step in self.steps)

    def __str__(self) -> str:
        programs = [step.command for step in self.steps if not step.writes_a_file]
        return f"{self.page}: {(programs or [self.steps[0].command])[0]}"


def blocks_of(page: str, text: str) -> list[Block]:
    """The transcripts of a page in their order."""
    blocks: list[Block] = []
    written: list[str] = []
    for line, not_run, lines in _fenced(text):
        steps = tuple(_steps(line, lines))
        if not steps:
            continue
        blocks.append(Block(page, line, steps, not_run, tuple(written)))
        if not not_run:
            written += [step.command for step in steps if step.writes_a_file]
    return blocks


def _fenced(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """(line number, reason not to run it, lines) of every fenced block."""
    before, fence, inside = "", "", list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        opening = re.match(r"\s*(```+)", line)
        if fence:
            if line.strip() == fence:
                marked = NOT_RUN.search(before)
                yield number - len(inside), marked["reason"] if marked else "", inside
                before, fence, inside = "", "", []
            else:
                inside.append(line)
        elif opening:
            fence = opening[1]
        elif line.strip():
            before = line


def _steps(first: int, lines: list[str]) -> Iterator[Step]:
    command, shown, at = "", list[str](), first
    for number, line in enumerate(lines, start=first):
        if line.startswith("$ "):
            if command:
                yield Step(command, tuple(shown), at)
            command, shown, at = line.removeprefix("$ "), [], number + 1
        elif command.endswith("\\"):
            command, at = f"{command}\n{line}", number + 1
        elif command:
            shown.append(line)
    if command:
        yield Step(command, tuple(shown), at)


def copy_of_the_checkout(folder: Path) -> Path:
    """A copy in which commands may leave files; bytecode comes with it, as nothing is changed."""
    return shutil.copytree(ROOT, folder / "kernbench", ignore=shutil.ignore_patterns(*NOT_COPIED))


RunCommand = Callable[[str, Path], subprocess.CompletedProcess[str]]


class Transcript:
    """Runs commands of pages in `checkout`; a command that several pages show runs once."""

    def __init__(self, checkout: Path, run_command: RunCommand | None = None) -> None:
        self._checkout, self._run = checkout, run_command or run
        self._ended: dict[tuple[str, ...], subprocess.CompletedProcess[str]] = {}

    def endings(self, block: Block) -> Iterator[tuple[Step, subprocess.CompletedProcess[str]]]:
        """The steps of a block with the ends of their commands, one after the other."""
        written = list(block.before)
        for step in block.steps:
            ended = self.of(step.command, tuple(written))
            if step.writes_a_file:
                written.append(step.command)
            yield step, ended

    def of(self, command: str, before: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        """The end of `command` after the commands `before` that write what it reads."""
        prepared = tuple(each for each in before if _written(each) in command)
        if (*prepared, command) not in self._ended:
            for each in prepared:
                assert self._run(each, self._checkout).returncode == 0, each
            self._ended[*prepared, command] = self._run(command, self._checkout)
        return self._ended[*prepared, command]


def _written(command: str) -> str:
    """The file or the folder that a preparing command writes: the end of the command."""
    return command.rsplit(maxsplit=1)[-1].partition("/")[0]


def run(command: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of a page as a user would, with this Python."""
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        cwd=checkout,
        env=os.environ | _environment(checkout),
        timeout=TIMEOUT_S,
        check=False,
    )


def run_here(command: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run a plain command in this process, which imports nothing again; else as `run`."""
    plain = _PLAIN.fullmatch(command)
    if plain is None:
        return run(command, checkout)
    with patch.dict(os.environ, _environment(checkout)):
        ended = called(checkout, *shlex.split(plain["words"], comments=True))
    return subprocess.CompletedProcess(command, ended.code, ended.out, ended.err)


def _environment(checkout: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(checkout),
        "COLUMNS": "200",
    }


def output_of(ended: subprocess.CompletedProcess[str]) -> str:
    """Output that a page shows: standard output, errors of a failed command, but no progress."""
    return ended.stdout if ended.returncode == 0 else ended.stdout + ended.stderr


def difference(step: Step, printed: str) -> str:
    """Empty where the output is what the page shows, else the first difference.

    Where the page shows no output, the figures in a comment behind the command must be printed.
    """
    actual = normalised(printed.splitlines())
    if not step.shown:
        _, _, comment = step.command.partition(" # ")
        missing = [figure for figure in FIGURE.findall(comment) if figure not in printed]
        return f"not printed: {', '.join(missing)}" if missing else ""
    expected = normalised(step.shown)
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else f"{pattern_of(line)}\n" for line in expected
    )
    text = "".join(f"{line}\n" for line in actual)
    if re.fullmatch(pattern, text):
        return ""
    absent = [line for line in expected if "…" not in line and line not in actual]
    return f"not printed: {absent[0]!r}" if absent else "other lines are printed between these"


def pattern_of(line: str) -> str:
    """The regular expression of a line of a page, in which `…` is any text."""
    return re.escape(line).replace("…", ".*")


def normalised(lines: list[str] | tuple[str, ...]) -> list[str]:
    """Lines without what depends on the machine; ranks print in any order, here in that of text."""
    return in_order_of_ranks([without_machine(line) for line in without_end(lines)])


def without_machine(line: str) -> str:
    """The line without what depends on the machine."""
    for pattern, replacement in NORMALISED:
        line = pattern.sub(replacement, line)
    return line


def without_configuration(line: str) -> str:
    """The line without the hash of the configuration, which every new key of a file changes."""
    return CONFIGURATION.sub(r"\1…", line)


def without_end(lines: list[str] | tuple[str, ...]) -> list[str]:
    """Lines without spaces at their ends, and without empty lines at the end."""
    stripped = [line.rstrip() for line in lines]
    while stripped and not stripped[-1]:
        stripped.pop()
    return stripped


def in_order_of_ranks(lines: list[str]) -> list[str]:
    """Neighbouring lines of ranks in the order of their text."""
    grouped = groupby(lines, key=lambda line: RANK.match(line) is not None)
    return [line for ranks, group in grouped for line in (sorted(group) if ranks else group)]
