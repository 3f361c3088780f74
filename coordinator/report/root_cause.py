"""The summary that `torchrun` prints when a script fails: which rank failed first, and how.

Wall time and host are left out: all ranks run on one host, and the simulated time is the same in
every run.
"""

from collections.abc import Iterator

from coordinator.failure import LpDied, RankFailed
from coordinator.launcher import UNKNOWN_EXIT
from runtime.core.errors import KernbenchError
from runtime.core.simtime import format_ps

_WIDTH = 60


def root_cause(script: str, error: KernbenchError) -> Iterator[str]:
    """The lines for a failure of a rank or its process; none for any other error."""
    entry = list(_entry(error))
    if entry:
        yield "=" * _WIDTH
        yield f"{script} FAILED"
        yield "-" * _WIDTH
        yield "Failures:"
        # The first failure ends the run: no other one is observed.
        yield "  <NO_OTHER_FAILURES>"
        yield "-" * _WIDTH
        yield "Root Cause (first observed failure):"
        yield "[0]:"
        yield from entry
        yield "=" * _WIDTH


def _entry(error: KernbenchError) -> Iterator[str]:
    if isinstance(error, RankFailed) and error.failed.rank >= 0:
        failed = error.failed
        yield from _head(failed.time_ps, failed.rank, failed.exit_code or 1, error.process.pid)
        if failed.exit_code:
            yield "  traceback : <N/A>"
        else:
            yield f"  error     : {f'{failed.error}: {failed.message}'.splitlines()[0]}"
            yield "  traceback : printed above"
    if isinstance(error, LpDied):
        pid, code = error.process.pid, error.exit_code
        yield from _head(error.time_ps, error.process.sips[0], code, pid)
        by_signal = f"Signal {-code} ({error.signal_name}) received by PID {pid}"
        yield f"  traceback : {by_signal if code < 0 else '<N/A>'}"


def _head(time_ps: int, rank: int, exit_code: int, pid: int) -> Iterator[str]:
    yield f"  time      : {format_ps(time_ps)} (simulated)"
    yield f"  rank      : {rank} (local_rank: {rank})"
    shown = "<N/A>" if exit_code == UNKNOWN_EXIT else exit_code
    yield f"  exitcode  : {shown} (pid: {pid})"
