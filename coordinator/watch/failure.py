"""The errors that end a run: each names the LP, its ranks, the cause and the simulated time."""

import signal
from dataclasses import dataclass

from coordinator.watch.late_ranks import LateRanks
from runtime.core.errors import KernbenchError
from runtime.core.simtime import format_ps
from runtime.wire.control import Failed
from runtime.wire.lp_name import lp_name


class CodeDiffersError(KernbenchError):
    """Two processes of a run have imported different code.

    Fields: the module; a process, the file of the module there and its SHA-256; another process,
    its file and its SHA-256.
    """

    def __init__(
        self,
        module: str,
        process: str,
        code: tuple[str, str],
        other: str,
        other_code: tuple[str, str],
    ) -> None:
        super().__init__(module, process, code, other, other_code)
        self.module, self.process, self.code = module, process, code
        self.other, self.other_code = other, other_code

    def __str__(self) -> str:
        (file, digest), (other_file, other_digest) = self.code, self.other_code
        files = (
            f"{self.process} has {file} (sha256 {digest[:12]})",
            f"{self.other} has {other_file} (sha256 {other_digest[:12]})",
        )
        rule = "all processes of a run execute the same code; was the file edited meanwhile?"
        summary = f"{self.process} and {self.other} differ in the code of module {self.module!r}"
        return f"{summary} ({file}): {rule}{_listed(files)}"


@dataclass(frozen=True)
class LpProcess:
    """Identifies an LP in an error: its number, its SIPs, its process id if it is a child here, and
    the name of its host if a launcher has started it.
    """

    lp: int
    sips: tuple[int, ...]
    pid: int | None
    host: str = ""

    def __str__(self) -> str:
        process = () if self.pid is None else (f"pid {self.pid}",)
        host = f" on {self.host}" if self.host else ""
        return lp_name(self.lp, self.sips, *process) + host


class RankFailed(KernbenchError):  # noqa: N818 - it is the rank that failed
    """A rank, a kernel or an LP raised an exception, or a rank exited with a code other than 0.

    Fields: the LP, its `Failed` message.
    """

    def __init__(self, process: LpProcess, failed: Failed) -> None:
        super().__init__(process, failed)
        self.process, self.failed = process, failed

    @property
    def is_about_input(self) -> bool:
        """Whether the cause is the user's input: a flag or a configuration file."""
        return self.failed.about_input

    def __str__(self) -> str:
        failed = self.failed
        # An error outside of any rank, for example in the chip, has the rank -1.
        source = f"rank {failed.rank}" if failed.rank >= 0 else str(self.process)
        if failed.exit_code:
            return f"{source} exited with code {failed.exit_code} at {format_ps(failed.time_ps)}"
        return f"{source} raised {failed.error} at {format_ps(failed.time_ps)}{self._text}"

    @property
    def lines(self) -> str:
        """The traceback and the error, as Python prints them."""
        return f"{self.failed.traceback}{self.failed.error}{self._text}\n"

    @property
    def _text(self) -> str:
        """The text behind the name of the type; of an error without a text, the notes alone."""
        message = self.failed.message
        return f": {message}" if message and not message.startswith("\n") else message


class LpDied(KernbenchError):  # noqa: N818 - it is the LP that died
    """The process of an LP exited before the end of the run.

    Fields: the LP, its exit code (-n: signal n), its last reported time in ps.
    """

    def __init__(self, process: LpProcess, exit_code: int, time_ps: int) -> None:
        super().__init__(process, exit_code, time_ps)
        self.process, self.exit_code, self.time_ps = process, exit_code, time_ps

    @property
    def signal_name(self) -> str | None:
        """The signal that killed the process, such as `SIGKILL`."""
        return signal_name(-self.exit_code) if self.exit_code < 0 else None

    @property
    def cause(self) -> str:
        """The end of the process, as a verb of the message."""
        # Popen and multiprocessing report the death by signal n as the exit code -n.
        if self.exit_code < 0:
            return f"was killed by {self.signal_name}"
        return f"exited with code {self.exit_code}"

    def __str__(self) -> str:
        last = f"last reported time {format_ps(self.time_ps)}"
        return f"{self.process} {self.cause} before the end of the run; {last}"


class LpLost(KernbenchError):  # noqa: N818 - it is the LP that is lost
    """The connection to an LP on this or another host has ended before the end of the run.

    Fields: the LP, why its connection has ended, its last reported time in ps.
    """

    def __init__(self, process: LpProcess, reason: str, time_ps: int) -> None:
        super().__init__(process, reason, time_ps)
        self.process, self.reason, self.time_ps = process, reason, time_ps

    def __str__(self) -> str:
        return (
            f"{self.process} is gone before the end of the run: its connection is lost "
            f"({self.reason}); last reported time {format_ps(self.time_ps)}"
        )


class PeerUnreachable(KernbenchError):  # noqa: N818 - it is the peer that cannot be reached
    """Two LPs have lost the connection between them, though both are connected to the coordinator.

    Fields: the LP that reports it, the other one, what it reports, its simulated time in ps.
    """

    def __init__(self, process: LpProcess, peer: LpProcess, problem: str, time_ps: int) -> None:
        super().__init__(process, peer, problem, time_ps)
        self.process, self.peer, self.problem, self.time_ps = process, peer, problem, time_ps

    def __str__(self) -> str:
        return (
            f"{self.process} does not reach {self.peer} any more at {format_ps(self.time_ps)}: "
            f"{self.problem}; the coordinator reaches both, so the network between them is cut"
        )


class RanksAbsent(KernbenchError):  # noqa: N818 - it is the ranks that are absent
    """Processes that a launcher should have started have not joined. Fields: their ranks, the
    number of all, the limit in s, why strangers were refused.
    """

    def __init__(
        self, ranks: tuple[int, ...], world_size: int, limit_s: float, refusals: tuple[str, ...]
    ) -> None:
        super().__init__(ranks, world_size, limit_s, refusals)
        self.ranks, self.world_size = ranks, world_size
        self.limit_s, self.refusals = limit_s, refusals

    def __str__(self) -> str:
        refused = f" (refused: {'; '.join(self.refusals)})" if self.refusals else ""
        have = "has" if len(self.ranks) == 1 else "have"
        return (
            f"{_ranks(self.ranks)} of {self.world_size} {have} not joined within "
            f"{self.limit_s:g} s, the limit set by --timeout{refused}: the launcher starts every "
            "rank with the same command line and the same secret, and all reach rank 0"
        )


class LpExitFailed(LpDied):
    """An LP reported its results, and then its process exited with a code other than 0."""

    def __str__(self) -> str:
        return f"{self.process} {self.cause} after the end of the run; the results are complete"


_BUSY_SHARE = 0.1
"""The share of a core from which on a silent LP computes."""


class LpSilent(KernbenchError):  # noqa: N818 - it is the LP that is silent
    """An LP sends no messages: it hangs, or it computes.

    Fields: the LP, the message that is due, the limit in s, the last reported time in ps; during a
    run also a line per other LP; its processor time since its last message in s, if it was read.
    """

    def __init__(
        self,
        process: LpProcess,
        due: str,
        limit_s: float,
        time_ps: int,
        others: tuple[str, ...] | None = None,
        used_s: float | None = None,
    ) -> None:
        super().__init__(process, due, limit_s, time_ps, others, used_s)
        self.process, self.due, self.limit_s = process, due, limit_s
        self.time_ps, self.others, self.used_s = time_ps, others, used_s

    @property
    def computes(self) -> bool:
        """Whether the LP uses processor time."""
        return self.used_s is not None and self.used_s > _BUSY_SHARE * self.limit_s

    def __str__(self) -> str:
        used = (
            "" if not self.used_s else f", in which it used {self.used_s:.1f} s of processor time"
        )
        text = (
            f"{self.process} {'computes' if self.computes else 'hangs'}: no {self.due} from it for "
            f"{self.limit_s:g} s, the limit set by --timeout{used}; last reported time "
            f"{format_ps(self.time_ps)}"
        )
        # Before the start there are no states of other LPs to show.
        if self.others is None:
            return text
        cause = (
            "its program or a kernel computes without an end, or for longer than --timeout allows"
            if self.computes
            else "the process is stopped, or its program waits for something outside of the "
            "simulation"
        )
        return f"{text}. This is not a deadlock of queues: {cause}{_listed(self.others)}"


class CollectiveTimeout(KernbenchError):  # noqa: N818 - PyTorch calls it a timeout
    """A rank computes in Python while others wait for it in a collective, for too long.

    Fields: the LP of the rank, what waits for which ranks, the time at which the LP stands in ps.
    """

    def __init__(self, process: LpProcess, late: LateRanks, time_ps: int) -> None:
        super().__init__(process, late, time_ps)
        self.process, self.late, self.time_ps = process, late, time_ps

    def __str__(self) -> str:
        late = self.late
        by = "its process group" if late.by_group else "--timeout"
        verb = "computes" if late.computes else "had computed"
        return (
            f"{late.name} (call {late.call} of {late.group}) timed out after {late.limit_s:g} s, "
            f"the limit set by {by}: {_ranks(late.waiting)} waited, missing ranks: "
            f"{', '.join(map(str, late.missing))}. The program of rank {late.late} {verb} "
            f"in Python ({self.process}, last reported time {format_ps(self.time_ps)}); a longer "
            "timeout of init_process_group allows that"
        )


@dataclass(frozen=True)
class SlowExit:
    """A process that has not exited `waited_s` after the end of a run, and is killed.

    It is no error: its LP has reported its results.
    """

    process: LpProcess
    waited_s: float

    def __str__(self) -> str:
        return (
            f"{self.process} has not exited {self.waited_s:.1f} s after the end of the run and is "
            "killed; the results are complete"
        )


class RunStalled(KernbenchError):  # noqa: N818 - it is the run that has stalled
    """All LPs send messages, but simulated time does not advance.

    Fields: the limit in s, the simulated time in ps, a line per LP.
    """

    def __init__(self, limit_s: float, time_ps: int, lps: tuple[str, ...]) -> None:
        super().__init__(limit_s, time_ps, lps)
        self.limit_s, self.time_ps, self.lps = limit_s, time_ps, lps

    def __str__(self) -> str:
        return (
            f"simulated time has stood at {format_ps(self.time_ps)} for {self.limit_s:g} s, the "
            f"limit set by --timeout, though every LP is alive: each waits for a promise of "
            f"another. This is not a deadlock of queues{_listed(self.lps)}"
        )


class Interrupted(KernbenchError):  # noqa: N818 - the user did it
    """A signal stopped the coordinator. Fields: its number, the simulated time in ps."""

    def __init__(self, signum: int, time_ps: int) -> None:
        super().__init__(signum, time_ps)
        self.signum, self.time_ps = signum, time_ps

    def __str__(self) -> str:
        return f"stopped by {signal_name(self.signum)} at {format_ps(self.time_ps)}"


def _ranks(ranks: tuple[int, ...]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"


def _listed(lines: tuple[str, ...]) -> str:
    return "".join(f"\n  {line}" for line in lines)


def signal_name(signum: int) -> str:
    """`SIGKILL` for 9; `signal 64` where the number has no name."""
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"
