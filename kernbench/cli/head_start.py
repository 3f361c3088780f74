"""Starts the processes of a run before the command line has been read to its end.

A process imports for some tenths of a second, and so does the command, which checks its arguments
and files; so they do it at the same time. The number of processes is guessed from a first look at
the arguments. A wrong guess costs time and changes nothing: the session ends the processes that do
not fit, and the command those of a run that never starts.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from kernbench.benches import BENCHES
from kernbench.points.task import LOCAL
from runtime.core.cores import usable_cores

if TYPE_CHECKING:
    from coordinator.launch.start import Launch

_SIMULATIONS = ("run", "perf")
"""The commands that start the processes of one run."""
_OTHERS = ("node", "list", "probe", "validate", "sweep", "runs")
_PROCS = "--procs"
_SIPS = ("--sips", "--nproc-per-node", "--nproc_per_node")
_MODULE = ("-m", "--module")
_PROGRAM = "a program"
"""Stands for an option where the program is no bench: a script, a module or a collective."""
_OF_EVERY_BENCH = frozenset((_PROCS, "--bench", "--out", "--timeout", *_SIPS))
_NO_RUN = ("-h", "--help", "--list")


def head_start(arguments: Sequence[str], began_s: float) -> "Launch | None":
    """The processes of the run that `arguments` request; None where no run is in sight.

    `began_s` is the time at which the command has started. At most one process for each core is
    started: more would only delay each other.
    """
    procs = guessed_procs(arguments)
    if procs is None:
        return None
    # A wrong KERNBENCH_CORE is one line here, not an error of every process.
    import_module("runtime.core.compiled.choice")
    from coordinator.launch.launcher import InterpreterLauncher
    from coordinator.launch.start import Launch

    launch = Launch(InterpreterLauncher(), began_s)
    launch.start(procs, at_most=usable_cores())
    return launch


def guessed_procs(arguments: Sequence[str]) -> int | None:
    """The number of processes that a run with these arguments has; None if it cannot be seen."""
    given = _options(arguments)
    if given is None or given.get("--bench", BENCHES[0]) not in BENCHES:
        return None
    if given.get("--on", LOCAL) != LOCAL:
        return None
    sips = next((given[name] for name in _SIPS if name in given), None)
    procs = given.get(_PROCS)
    is_auto = procs == "auto"
    counts = [sips] if procs is None or is_auto else [sips, procs] if sips else [procs]
    if not all(count is not None and count.isdecimal() and int(count) > 0 for count in counts):
        return None
    count = min(int(str(count)) for count in counts)
    if not is_auto:
        return count
    # Not before: it chooses the core, and a wrong KERNBENCH_CORE is an error of `head_start`.
    from kernbench.benches.short_runs import procs_by_cores

    # Any other option may be a flag of the bench, or change the machine.
    is_default = given.keys() <= _OF_EVERY_BENCH
    return procs_by_cores(count, given.get("--bench", BENCHES[0]) if is_default else None)


def _options(arguments: Sequence[str]) -> dict[str, str] | None:
    """The options with their values up to a script; None for a command that starts no run."""
    options = dict[str, str]()
    name, is_perf = "", False
    for index, argument in enumerate(arguments):
        if argument in _NO_RUN or (index == 0 and argument in _OTHERS):
            return None
        if argument in _MODULE:
            # The next argument is the program.
            name = ""
        elif argument.startswith("-"):
            name, equals, value = argument.partition("=")
            if equals:
                options[name], name = value, ""
        elif name:
            options[name], name = argument, ""
        elif argument in _SIMULATIONS:
            if argument == "perf":
                is_perf, options[_PROGRAM] = True, argument
        elif not is_perf:
            # A script: what follows it are its own arguments. `perf` has no script.
            options[_PROGRAM] = argument
            break
    return options
