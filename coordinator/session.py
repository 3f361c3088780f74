"""Runs one simulation from top to bottom: launch, rendezvous, start, watch, collect, dismiss.

    launch       one process per LP, each with an `LpSpec`
    rendezvous   every LP connects and sends `Hello` with the endpoint of its channels; LPs that a
                 launcher has started are numbered by host
    start        `Peers` and the job to all; every LP builds its chips and sends `Ready` with its
                 config hash; then `Start`. Both messages carry the hashes of the LP's code, which
                 must be equal on all LPs
    watch        status, traces and op logs arrive; a failure, an exit or silence ends the run
    collect      `Done` of every LP, with digests and counters
    dismiss      `Bye`; the processes exit with code 0, while the files of the run are written;
                 those that are slow are killed

The report is made from the returned `RunResult`. Every exit path leaves the same `with` block, so
no process, socket or directory outlives the session.
"""

import signal
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

from coordinator.launch.children import GRACE_S
from coordinator.launch.launcher import Launcher
from coordinator.launch.placement import Placement, place
from coordinator.launch.rendezvous import Rendezvous
from coordinator.launch.start import Launch
from coordinator.launch.strangers import Strangers, stranger_warnings, strangers_of
from coordinator.plan import Plan
from coordinator.watch.code import RunCode
from coordinator.watch.collected import Collected
from coordinator.watch.failure import LpExitFailed, SlowExit
from coordinator.watch.watch import RunObserver, Watch
from runtime.core.code.imported_code import CodeFile
from runtime.core.errors import InvariantError, KernbenchError, ProtocolError, UsageError
from runtime.core.wallclock import now_s
from runtime.diagnosis.deadlock import deadlock
from runtime.wire.control import Done, Hello, Peers, Ready, Refused, Start


class RunWriter(Protocol):
    """Writes the files of a run while it takes place."""

    def launched(self) -> None:
        """The processes are launched, and the coordinator has little to do until they end."""
        ...

    def collected(self, collected: Collected) -> None:
        """The ranks have finished, the LPs have sent everything, and their processes exit."""
        ...


@dataclass(frozen=True)
class RunResult:
    """The messages of the LPs: all if `error` is None, otherwise those that came before the error.

    `startup_s` is the wall time until `Start` was sent, from the beginning of the launch or, in a
    command, from the start of its process; `wall_s` the wall time from then until all LPs had
    reported, or until the error. `slow_exits` are the processes that had to be killed after the end
    of the run. `code` is the file of every module that an LP has imported, by name. `refusals` are
    the strangers at the control socket, by reason. `placement` has the hosts of the LPs, once all
    have joined.
    """

    collected: Collected
    error: KernbenchError | None
    startup_s: float
    wall_s: float
    slow_exits: tuple[SlowExit, ...] = ()
    code: Mapping[str, CodeFile] = field(default_factory=dict[str, CodeFile])
    refusals: tuple[Refused, ...] = ()
    placement: Placement | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every LP has reported its results, however its process has exited then."""
        return self.error is None or isinstance(self.error, LpExitFailed)

    @property
    def strangers(self) -> Strangers:
        """The number of processes outside of the run that each socket refused, by reason."""
        return strangers_of(self.collected.done, self.refusals)

    @property
    def warnings(self) -> list[str]:
        """The lines for the user about facts that do not affect the result."""
        return [*stranger_warnings(self.strangers), *map(str, self.slow_exits)]


class Session:
    """A run of `plan` on processes that `launcher` starts.

    No process, socket or file of it remains when `run` returns or raises. After a failure the other
    processes have `grace_s` to exit by themselves, then as long to handle SIGTERM; it can be set
    while the session runs. In place of a launcher it takes the processes of a `Launch`.
    """

    def __init__(
        self,
        plan: Plan,
        launcher: Launcher | Launch,
        observer: RunObserver,
        files: RunWriter | None = None,
    ) -> None:
        self._plan = plan
        self._launcher = launcher
        self._observer = observer
        self._files = files
        self._stop_signal: int | None = None
        self.placement: Placement | None = None
        self.grace_s = GRACE_S

    def run(self) -> RunResult:
        """Run to the end. An error of the user, a rank or a peer is `RunResult.error`.

        Any other exception is a defect of kernbench and is raised.
        """
        launch = self._launcher
        if not isinstance(launch, Launch):
            launch = Launch(launch)
        with (
            _stopped_by_signals(self),
            launch.directory,
            Rendezvous(launch.endpoints, launch.run_id, self._plan.procs) as rendezvous,
            launch.children as children,
            _notified_of_the_end(self._observer),
        ):
            # Before the first child of multiprocessing starts: a later edit is noticed.
            code = RunCode()
            watch = Watch(
                rendezvous,
                children,
                self._plan.sips_of_lp,
                self._plan.timeout_s,
                lambda: self._stop_signal,
                self._observer,
            )
            started_s = ended_s = None
            error, slow_exits = None, ()
            try:
                launch.bound(rendezvous.endpoints)
                self._launch(launch)
                self._start(watch, rendezvous, code)
                started_s = now_s()
                watch.collect()
                _compare_code(code, watch.collected.done)
                # The exit of the processes is no part of the simulation and may be slow.
                ended_s = now_s()
                watch.dismiss()
                watch.collected.logs.index()
                _require_finished(watch.collected.done)
                if self._files is not None:
                    self._files.collected(watch.collected)
                slow_exits = watch.wait_for_exits(self._plan.exit_s)
                watch.require_clean_exits()
            except KernbenchError as problem:
                error = problem
                children.terminate_s = self.grace_s
                watch.abort(problem, self.grace_s)
        ended_s = ended_s or now_s()
        started_s = started_s or ended_s
        return RunResult(
            collected=watch.collected,
            error=error,
            startup_s=started_s - launch.began_s,
            wall_s=ended_s - started_s,
            slow_exits=slow_exits,
            code=code.files,
            refusals=rendezvous.refusals,
            placement=self.placement,
        )

    def stop(self, signum: int = signal.SIGINT) -> None:
        """End the run within a few seconds, as if `signum` had arrived.

        Safe in signal handlers and in other threads: it only sets a variable, which `Watch` reads.
        """
        self._stop_signal = signum

    def _launch(self, launch: Launch) -> None:
        launch.start(self._plan.procs)
        self._observer.launched(launch.children.pids)
        if self._files is not None:
            self._files.launched()

    def _start(self, watch: Watch, rendezvous: Rendezvous, code: RunCode) -> None:
        hellos = watch.receive_from_all(Hello)
        _compare_code(code, hellos)
        code.check_start()
        self.placement = placement = place(hellos)
        if self._plan.delay_us is not None and placement.machines > 1:
            raise UsageError(
                f"--delay-us with processes on {placement.machines} machines, whose clocks differ: "
                "omit it; there is a network between them"
            )
        rendezvous.renumber(placement.lp_of)
        watch.placed(placement)
        self._observer.placed(placement, self._plan.sips_of_lp)
        endpoints = tuple(hellos[rank].endpoint for rank in placement.ranks)
        for lp in range(self._plan.procs):
            peers = Peers(
                lp=lp,
                endpoints=endpoints,
                hosts=placement.hosts,
                host_names=placement.names,
                sips_of_lp=self._plan.sips_of_lp,
                job=self._plan.job,
            )
            rendezvous.send(lp, peers)
        expected = self._plan.config.hash
        readies = watch.receive_from_all(Ready)
        _compare_code(code, readies)
        for lp, ready in readies.items():
            # Every LP parses the configuration text itself: different versions of a package could
            # give it another meaning, and the SIPs would then simulate different machines.
            if ready.config_hash != expected:
                raise ProtocolError(
                    f"LP {lp}",
                    f"its config hash is {ready.config_hash}, the coordinator's {expected}",
                )
        rendezvous.broadcast(Start())


def _compare_code(code: RunCode, reports: Mapping[int, Hello | Ready | Done]) -> None:
    """Raise `CodeDiffersError` unless all LPs execute the same code, as far as they report it."""
    for lp, report in reports.items():
        code.add(lp, report.code)
    code.check()


def _require_finished(done: Mapping[int, Done]) -> None:
    """Raise the deadlock if a rank has not finished, or the first violated law of the model."""
    reports = [report for lp in sorted(done) for report in done[lp].sips]
    if not all(report.finished for report in reports):
        raise deadlock(reports)
    for report in reports:
        if report.broken_law:
            raise InvariantError(f"sip {report.sip} at the end of the run", report.broken_law)


@contextmanager
def _notified_of_the_end(observer: RunObserver) -> Generator[None]:
    try:
        yield
    finally:
        observer.ended()


@contextmanager
def _stopped_by_signals(session: Session) -> Generator[None]:
    """SIGINT, SIGTERM and SIGHUP stop the session; handlers of the caller stay in force."""
    if threading.current_thread() is not threading.main_thread():
        # Python allows signal handlers in the main thread only.
        yield
        return

    def stop(signum: int, _: FrameType | None) -> None:
        session.stop(signum)

    # A terminal that is closed sends SIGHUP; under nohup it is ignored, and stays so.
    stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {signum: signal.getsignal(signum) for signum in stops}
    replaced = [s for s in previous if s == signal.SIGINT or previous[s] == signal.SIG_DFL]
    for signum in replaced:
        signal.signal(signum, stop)
    try:
        yield
    finally:
        for signum in replaced:
            signal.signal(signum, previous[signum])
