"""Finds the code that a rank runs: a bench, a script, or a function of the parent process.

Its environment variables are those that `torchrun` sets. They describe one rank, and several ranks
may share a process: then each rank sees, sets and deletes its own in `os.environ`. All other
variables belong to the process.
"""

import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from runtime.core.bench_registry import BenchOutcome
from runtime.core.code.bench_source import import_source, is_file, split_source
from runtime.core.code.imported_code import SCRIPT
from runtime.core.code.package_check import put_first
from runtime.wire.control import Job, Peers
from runtime.wire.environment import RankPlace, rank_environment

own_variables: ContextVar[dict[str, str]] = ContextVar("own_variables")
"""The variables of the rank that runs, as it has changed them."""


def rank_place(peers: Peers, rank: int, world_size: int) -> RankPlace:
    """The position of a rank in its run, which has SIP number `rank`."""
    host_of = {
        sip: host
        for sips, host in zip(peers.sips_of_lp, peers.hosts, strict=True)
        for sip in sips
        if sip < world_size
    }
    beside = sorted(other for other, host in host_of.items() if host == host_of[rank])
    return RankPlace(
        rank=rank,
        world_size=world_size,
        local_rank=beside.index(rank),
        local_world_size=len(beside),
        host=host_of[rank],
        hosts=len(set(host_of.values())),
    )


def provide_variables(places: Sequence[RankPlace], *, script: bool) -> None:
    """Set the variables of the ranks of this process, before their programs start."""
    if not places:
        return
    variables = rank_environment(places[0], script=script)
    if not script or places[0].hosts > 1:
        # A program that spawns its ranks sets the address itself, as PyTorch requires; a launcher
        # on several hosts does.
        variables |= {name: os.environ[name] for name in _ADDRESS if name in os.environ}
    if len(places) == 1:
        os.environ.update(variables)
    else:
        os.environ.update({name: variables[name] for name in _ADDRESS})
        # In place: modules hold references to `os.environ`.
        os.environ.__class__ = _SharedEnviron


_ADDRESS = ("MASTER_ADDR", "MASTER_PORT")
_OF_A_RANK = frozenset(rank_environment(RankPlace.on_one_host(0, 1), script=True)) - {*_ADDRESS}


# No other class can take its place.
class _SharedEnviron(os._Environ[str]):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    """`os.environ` in a process with several ranks."""

    def __getitem__(self, key: str) -> str:
        own = own_variables.get(None)
        if own is None or key not in _OF_A_RANK:
            return super().__getitem__(key)
        return own[key]

    def __setitem__(self, key: str, value: str) -> None:
        own = own_variables.get(None)
        if own is None or key not in _OF_A_RANK:
            super().__setitem__(key, value)
        else:
            own[key] = value

    def __delitem__(self, key: str) -> None:
        own = own_variables.get(None)
        if own is None or key not in _OF_A_RANK:
            super().__delitem__(key)
        else:
            del own[key]

    def __iter__(self) -> Iterator[str]:
        own = own_variables.get(None)
        if own is None:
            yield from super().__iter__()
        else:
            yield from (key for key in super().__iter__() if key not in _OF_A_RANK)
            yield from (key for key in own if key in _OF_A_RANK)

    def __len__(self) -> int:
        return sum(1 for _ in self)


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
        """A module that runs, or that of a bench which is no file; None for other programs."""
        if self.job.kind == "module":
            return self.job.program
        source, _ = split_source(self.job.program)
        return source if self.job.kind == "bench" and not is_file(source) else None

    @property
    def folders(self) -> tuple[str, ...]:
        """The folder that goes first on the import path: of a script or a bench file, and the
        working directory for a module.
        """
        if self.job.kind == "module":
            return (str(Path.cwd()),)
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

    def of(self, place: RankPlace) -> Callable[[], object]:
        """The program of one rank, ready to be called without arguments."""
        main = self._main(place.rank)

        def run() -> object:
            own_variables.set(rank_environment(place, script=self.job.is_script))
            # Read once, when Triton is imported: its interpreter runs kernels on PEs.
            os.environ.setdefault("TRITON_INTERPRET", "1")
            return main()

        return run

    def _main(self, rank: int) -> Callable[[], object]:
        if self.job.kind == "script":
            return lambda: _until_exit(lambda: _script(self.job, self.script_starts))
        if self.job.kind == "module":
            return lambda: _until_exit(lambda: _module(self.job))
        if self.job.kind == "bench":
            return lambda: _bench(self.job, rank)
        function = self.function
        assert function is not None, "a function comes through the private pipe of the parent"
        return lambda: _until_exit(lambda: function(rank, *self.args))


class ProgramExited(Exception):  # noqa: N818 - it is the program that exited
    """A rank ended itself with an exit code other than 0. Field: the code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        return f"exit code {self.code}"


def _until_exit(main: Callable[[], object]) -> object:
    """The result of `main`; None if it ends with `sys.exit()` or `sys.exit(0)`, as by returning."""
    try:
        return main()
    except SystemExit as end:
        code = _exit_code(end.code)
        if code:
            raise ProgramExited(code) from end
        return None


def _exit_code(value: object) -> int:
    """The exit code that Python gives a process which ends with `sys.exit(value)`."""
    if value is None:
        return 0
    if isinstance(value, int):
        # A process has an exit code of eight bits.
        return value & 0xFF
    sys.stderr.write(f"{value}\n")
    return 1


def _bench(job: Job, rank: int) -> BenchOutcome:
    source, name = split_source(job.program)
    bench = getattr(import_source(source), name)
    outcome = _until_exit(lambda: bench(rank, **job.arguments))
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
    # Its hash is taken now: the file may be edited while the run starts.
    script_starts(path)
    runpy.run_path(job.program, run_name="__main__")


def _module(job: Job) -> None:
    """Run a module as `python -m module` would: the working directory is first on the path."""
    sys.argv = [job.program, *job.argv]
    put_first(Path.cwd())
    runpy.run_module(job.program, run_name="__main__", alter_sys=True)
