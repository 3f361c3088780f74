"""What a rank runs: a bench, a script, or a function that came with the process."""

import runpy
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from runtime.bench_registry import BenchOutcome
from runtime.wire.messages import Job

Function = Callable[..., object]


def rank_program(job: Job, rank: int, function: Function | None, args: tuple[object, ...]) -> Callable[[], object]:
    """The program of one rank, ready to be called without arguments."""
    if job.kind == "script":
        return lambda: _script(job)
    if job.kind == "bench":
        return lambda: _bench(job, rank)
    assert function is not None, "a function comes through the private pipe of the parent"
    return lambda: function(rank, *args)


def _bench(job: Job, rank: int) -> BenchOutcome:
    module_name, _, name = job.program.partition(":")
    outcome = getattr(import_module(module_name), name)(rank, **job.arguments)
    if not isinstance(outcome, BenchOutcome):
        raise TypeError(f"bench {job.program} returned {type(outcome).__name__}; a bench returns a BenchOutcome")
    return outcome


def _script(job: Job) -> None:
    """Run a file as `python file` would: as `__main__`, its folder first on the path, its own arguments."""
    path = Path(job.program)
    sys.argv = [job.program, *job.argv]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        runpy.run_path(job.program, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise RuntimeError(f"{path.name} ended with sys.exit({end.code!r})") from end
