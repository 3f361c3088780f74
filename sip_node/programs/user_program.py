"""Finds the code that a rank runs: a bench, a script, or a function of the parent process."""

import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runtime.core.bench_registry import BenchOutcome
from runtime.core.bench_source import import_source, is_file, split_source
from runtime.core.imported_code import SCRIPT
from runtime.core.package_check import put_first
from runtime.wire.control import Job

Function = Callable[..., object]


def _unnoticed(_: Path) -> None:
    """The start of a script in a run whose code is not compared."""


@dataclass(frozen=True)
class Programs:
    """The program of a run.

    `function` and `args` are set for a job of kind `function`: `torch.multiprocessing.spawn` passes
    them through the private pipe between parent and child, since code never comes from a socket.
    `script_starts` is called with the file of a script in the moment before it runs.
    """

    job: Job
    function: Function | None = None
    args: tuple[object, ...] = ()
    script_starts: Callable[[Path], None] = _unnoticed

    @property
    def module(self) -> str | None:
        """The module of a bench that is no file; None for every other program."""
        source, _ = split_source(self.job.program)
        return source if self.job.kind == "bench" and not is_file(source) else None

    @property
    def folders(self) -> tuple[str, ...]:
        """The folder of a script or a bench file, which goes first on the import path."""
        return () if self.file is None else (str(self.file[0].resolve().parent),)

    @property
    def file(self) -> tuple[Path, str] | None:
        """The file of a script or a bench file, and the name of its module; None without one."""
        if self.job.kind == "script":
            return Path(self.job.program), SCRIPT
        source, _ = split_source(self.job.program)
        if self.job.kind == "bench" and is_file(source):
            return Path(source), Path(source).stem
        return None

    def of(self, rank: int) -> Callable[[], object]:
        """The program of one rank, ready to be called without arguments."""
        if self.job.kind == "script":
            return lambda: _script(self.job, self.script_starts)
        if self.job.kind == "bench":
            return lambda: _bench(self.job, rank)
        function = self.function
        assert function is not None, "a function comes through the private pipe of the parent"
        return lambda: function(rank, *self.args)


def _bench(job: Job, rank: int) -> BenchOutcome:
    source, name = split_source(job.program)
    outcome = getattr(import_source(source), name)(rank, **job.arguments)
    if not isinstance(outcome, BenchOutcome):
        raise TypeError(
            f"bench {job.program} returned {type(outcome).__name__}; a bench returns a BenchOutcome"
        )
    return outcome


def _script(job: Job, script_starts: Callable[[Path], None]) -> None:
    """Run a file as `python file` would.

    That is as `__main__`, with its folder first on the path and its own arguments.
    """
    path = Path(job.program)
    sys.argv = [job.program, *job.argv]
    put_first(path.resolve().parent)
    script_starts(path)
    try:
        runpy.run_path(job.program, run_name="__main__")
    except SystemExit as end:
        # sys.exit() and sys.exit(0) are the normal end of a script.
        if end.code not in (None, 0):
            raise RuntimeError(f"{path.name} ended with sys.exit({end.code!r})") from end
