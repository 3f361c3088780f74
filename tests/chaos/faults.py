"""The faults of the series of signals: which signal reaches which processes, when and how often."""

from dataclasses import dataclass
from random import Random
from signal import Signals

from tests.chaos.programs import PROGRAMS, Program

TIMEOUT_S = 2.0
"""`--timeout` of a run whose processes are stopped."""

_FATAL_TO_AN_LP = (
    *(Signals.SIGKILL, Signals.SIGSEGV, Signals.SIGABRT, Signals.SIGBUS, Signals.SIGTERM),
    *(Signals.SIGHUP, Signals.SIGQUIT, Signals.SIGILL, Signals.SIGFPE, Signals.SIGXCPU),
    *(Signals.SIGALRM, Signals.SIGUSR2, Signals.SIGRTMIN),
)
_FATAL_TO_THE_COMMAND = (
    *(Signals.SIGKILL, Signals.SIGSEGV, Signals.SIGABRT, Signals.SIGQUIT, Signals.SIGBUS),
)
REQUESTS = (Signals.SIGINT, Signals.SIGTERM, Signals.SIGHUP)
"""Signals by which a user, a terminal or a scheduler requests the end of the command."""
_HARMLESS = (Signals.SIGCONT, Signals.SIGWINCH, Signals.SIGURG, Signals.SIGCHLD)


@dataclass(frozen=True)
class Kind:
    """A row of the table. Of `targets`, `lps` LPs: 0 for none, -1 for all."""

    name: str
    weight: int
    signals: tuple[Signals, ...]
    lps: int = 0
    command: bool = False
    group: bool = False
    """The process group of the command, as Ctrl-C and a closed terminal do."""
    again: bool = False
    """The signal is sent three times within a second."""
    stops: bool = False
    """The processes are stopped for good; `--timeout` limits that."""
    goes_on: bool = False
    """The processes are stopped, and continue after less than a second."""
    harmless: bool = False


KINDS = (
    Kind("a signal ends an LP", 10, _FATAL_TO_AN_LP, lps=1),
    Kind("a signal ends several LPs at once", 5, _FATAL_TO_AN_LP, lps=-1),
    Kind("a signal ends the command", 6, _FATAL_TO_THE_COMMAND, command=True),
    Kind("SIGKILL ends the command and an LP", 3, (Signals.SIGKILL,), lps=1, command=True),
    Kind("SIGKILL ends the whole process group", 2, (Signals.SIGKILL,), group=True),
    Kind("SIGINT, SIGTERM or SIGHUP to the command", 9, REQUESTS, command=True),
    Kind("SIGINT, SIGTERM or SIGHUP to the process group", 6, REQUESTS, group=True),
    Kind("the same, three times", 4, REQUESTS, group=True, again=True),
    Kind("an LP is stopped", 4, (Signals.SIGSTOP,), lps=1, stops=True),
    Kind("all LPs are stopped", 2, (Signals.SIGSTOP,), lps=-1, stops=True),
    Kind("an LP is stopped and goes on", 2, (Signals.SIGSTOP,), lps=1, goes_on=True),
    Kind(
        "the process group is stopped and goes on", 3, (Signals.SIGSTOP,), group=True, goes_on=True
    ),
    Kind("SIGINT to LPs", 2, (Signals.SIGINT,), lps=-1, harmless=True),
    Kind("signals that no process handles", 2, _HARMLESS, group=True, harmless=True),
)


@dataclass(frozen=True)
class Fault:
    """A fault of a run of `program` at `moment`, a share of the wall time of an undisturbed run."""

    kind: Kind
    program: Program
    moment: float
    signal: Signals
    order: float
    """A number from 0 to 1 that selects the LPs."""
    pause_s: float

    def __str__(self) -> str:
        targets = [
            *(["the command"] if self.kind.command else []),
            *(["its process group"] if self.kind.group else []),
            *(["an LP"] if self.kind.lps == 1 else ["all LPs"] if self.kind.lps else []),
        ]
        return (
            f"{self.signal.name} to {' and '.join(targets)} at {self.moment:.2f} of: {self.program}"
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of the run."""
        return (*((f"--timeout={TIMEOUT_S:g}",) if self.kind.stops else ()), *self.program.words)

    def lps(self, running: dict[int, int]) -> list[int]:
        """The process ids of the LPs that the signal reaches, of those that run."""
        pids = [running[lp] for lp in sorted(running)]
        if self.kind.lps < 0 or not pids:
            return pids if self.kind.lps else []
        return [pids[int(self.order * len(pids))]] * self.kind.lps


def drawn_fault(seed: int, number: int) -> Fault:
    """Fault `number` of the series with this seed; it does not depend on the others."""
    random = Random(f"{seed} signal {number}")
    (kind,) = random.choices(KINDS, [each.weight for each in KINDS])
    return Fault(
        kind=kind,
        program=random.choice(PROGRAMS),
        moment=random.uniform(0, 1.1),
        signal=random.choice(kind.signals),
        order=random.random(),
        pause_s=random.uniform(0.05, 0.8),
    )
