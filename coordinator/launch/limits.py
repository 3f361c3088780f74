"""Checks the limits of the shell (`ulimit`) before the processes of a run start.

A process that reaches a limit fails wherever it opens a file or imports a library, with an error
that names neither the limit nor what a run needs.
"""

import os
import resource

from runtime.core.errors import UsageError

_FILES, _FILES_PER_LP = 24, 6
"""Open files of LP 0: measured are 17 and 5 for each LP of the run. Most other LPs have fewer."""
_LIBRARIES_KIB = 700_000
"""Address space of the libraries of a coordinator. An LP needs less."""
_THREADS_PER_LP, _STACK_KIB = 2, 8 << 10
"""Threads of the coordinator which relay output. Each has a stack."""
_ARENA_KIB, _ARENAS_PER_CORE = 64 << 10, 8
"""Address space that the allocator of glibc reserves for a thread, and for how many at most."""


def require_limits(procs: int) -> None:
    """Raise `UsageError` if the limits are too low for a run of `procs` processes.

    The soft limit of open files is raised as far as the hard limit permits.
    """
    _require_files(_FILES + _FILES_PER_LP * procs, procs)
    limit, needed_kib = resource.getrlimit(resource.RLIMIT_AS)[0], _addresses_kib(procs)
    if limit != resource.RLIM_INFINITY and limit >> 10 < needed_kib:
        raise UsageError(
            f"ulimit -v is {limit >> 10:,} KiB of address space, and a run of {_processes(procs)} "
            f"needs {needed_kib:,}: ulimit -v unlimited"
        )


def _require_files(needed: int, procs: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UsageError(
            f"ulimit -n is {hard:,} open files, and a run of {_processes(procs)} needs {needed:,} "
            f"in each: ulimit -n {needed}, or fewer processes with --procs"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _addresses_kib(procs: int) -> int:
    threads = _THREADS_PER_LP * procs
    arenas = min(threads, _ARENAS_PER_CORE * (os.cpu_count() or 1))
    return _LIBRARIES_KIB + threads * _STACK_KIB + arenas * _ARENA_KIB


def _processes(procs: int) -> str:
    return "1 process" if procs == 1 else f"{procs} processes"
