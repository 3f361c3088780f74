"""Repeats a recorded run with another topology file, by the command that a user would type.

The report of a run names a program, and any user may have written it. So that program is shown
before it is executed, and by default it must be the caller's own and unchanged. While it runs, each
process refuses modules of the user which the recorded run did not have.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from coordinator.launch.launcher import lp_environment
from kernbench.cli.run import run_command
from kernbench.command.exit_codes import print_note, print_warning
from kernbench.command.options import HELP_NAMES, option_names
from kernbench.explain.records import RecordedRun, read_report
from kernbench.explain.records.own_program import doubts
from runtime.core.code.imported_code import EXPECTED_CODE
from runtime.core.errors import UsageError

_RESERVED = frozenset((*option_names(run_command.params), *HELP_NAMES))
"""The options of the command: no flag of a bench has such a name."""
_MOST_FILES = 8


@dataclass(frozen=True)
class Repetition:
    """The program of a recorded run, which may be executed.

    `checks_code`: the processes refuse code that the run did not have.
    """

    records: RecordedRun
    program: tuple[str, ...]
    checks_code: bool

    def simulated_ps(self, topology_text: str, what: str) -> int:
        """The time of the run on another machine, simulated. Raises `UsageError` naming `what`."""
        with TemporaryDirectory(prefix="kernbench-why-") as name:
            directory = Path(name)
            topology, ccl = directory / "topology.yaml", directory / "ccl.yaml"
            topology.write_text(topology_text, encoding="utf-8")
            ccl.write_text(self.records.ccl_text, encoding="utf-8")
            out = directory / "run"
            files = ["--topology", str(topology), "--ccl", str(ccl), "--out", str(out)]
            # `-P`: modules of the working directory must not hide those of Python.
            command = [sys.executable, "-P", "-m", "kernbench", *files, *self.program]
            ended = subprocess.run(  # noqa: S603 - a program that the user has allowed
                command,
                cwd=self._folder(directory),
                env=self._environment(directory / "code.json"),
                capture_output=True,
                text=True,
                check=False,
            )
            if ended.returncode != 0:
                lines = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
                raise UsageError(f"why: the run with {what} failed: {lines[-1]}")
            return read_report(out).total_ps

    def _folder(self, temporary: Path) -> Path:
        """The working directory of the run, of which a bench of kernbench has no need."""
        folder = Path(self.records.run.folder)
        if not self.records.run.user_code:
            return temporary
        if not folder.is_dir():
            raise UsageError(f"why: the working directory of the run is gone: {folder}")
        return folder

    def _environment(self, code: Path) -> dict[str, str]:
        environment = lp_environment(os.environ)
        environment.pop(EXPECTED_CODE, None)
        if self.checks_code:
            code.write_bytes(msgspec.json.encode(self.records.run.user_code))
            environment[EXPECTED_CODE] = str(code)
        return environment


def repetition(records: RecordedRun, *, run_program: bool) -> Repetition:
    """The program of the run, after it has been shown to the user.

    Raises `UsageError` for a program that may be another user's or may have changed, unless
    `run_program`, and for a run that no command line has started.
    """
    program = tuple(arguments(records))
    shown = _printable(shlex.join(program))
    reasons = [_printable(doubt) for doubt in doubts(records)]
    if reasons and not run_program:
        raise UsageError(
            f"why: {reasons[0]}: a simulation would execute its program, kernbench {shown}; "
            "--run-program does so"
        )
    print_note(f"the program of the run: kernbench {shown}")
    print_note(_files_shown([code.file for code in records.run.user_code.values()]))
    for reason in reasons[:_MOST_FILES]:
        print_warning(f"{reason}; it is executed because of --run-program")
    return Repetition(records, program, checks_code=not reasons)


def _files_shown(files: Sequence[str]) -> str:
    if not files:
        return "files of the user in it: none"
    rest = len(files) - _MOST_FILES
    names = [*files[:_MOST_FILES], *([f"{rest} others"] if rest > 0 else [])]
    return _printable(f"files of the user in it: {', '.join(names)}")


def _printable(text: str) -> str:
    """The text without characters that control a terminal."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def arguments(records: RecordedRun) -> Iterator[str]:
    """The options that repeat a run without a trace, besides its files.

    Raises `UsageError` for a run that no command line has started, and for a report that names
    another option in place of a program or of a flag.
    """
    run = records.run
    yield from ("--sips", str(run.sips), "--no-trace")
    if not run.data:
        yield "--no-data"
    if run.as_cuda:
        yield "--as-cuda"
    if run.program.startswith("-"):
        raise UsageError(f"why: {records.name}: the program {run.program!r} is an option")
    match run.kind:
        case "bench":
            yield from ("--bench", run.program)
            for name, value in run.arguments.items():
                yield _flag(records.name, name.replace("_", "-"), value)
        case "script":
            yield run.program
        case "module":
            yield from ("-m", run.program)
        case _:
            raise UsageError(
                f"why: {records.name}: the program {run.bench} has started this run by itself "
                "(torch.multiprocessing.spawn): no command can repeat it"
            )
    yield from run.argv


def _flag(name: str, option: str, value: object) -> str:
    if f"--{option}" in _RESERVED or not option.replace("-", "").isalnum():
        raise UsageError(f"why: {name}: {option!r} is no flag of a bench")
    if isinstance(value, bool):
        return f"--{option}" if value else f"--no-{option}"
    return f"--{option}={value}"
