"""One run, top to bottom: launch, rendezvous, start, watch, collect. The report is made from what this returns."""

import signal
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import getpid
from types import FrameType

from coordinator.directory import RunDirectory
from coordinator.launcher import Children, Launcher, LpSpec
from coordinator.plan import Plan
from coordinator.rendezvous import Rendezvous
from coordinator.watch import Collected, RunObserver, Watch
from runtime.core.errors import InvariantError, KernbenchError, ProtocolError
from runtime.core.rng import fresh_run_id
from runtime.core.wallclock import now_s
from runtime.diagnosis.deadlock import deadlock
from runtime.wire.messages import Done, Hello, Peers, Ready, Start


@dataclass(frozen=True)
class RunResult:
    """What a run left behind: complete when `error` is None, else what had arrived before the error.

    `startup_s` is the wall time until the LPs were told to start, `wall_s` from there to the end.
    """

    collected: Collected
    error: KernbenchError | None
    startup_s: float
    wall_s: float


class Session:
    """One run of `plan` on processes that `launcher` starts. Nothing of it remains when `run` returns or raises."""

    def __init__(self, plan: Plan, launcher: Launcher, observer: RunObserver) -> None:
        self._plan = plan
        self._launcher = launcher
        self._observer = observer
        self._stop_signal: int | None = None

    def run(self) -> RunResult:
        """Run to the end. What a user, a rank or a peer did wrong is the result's `error`; anything else is raised."""
        began_s = now_s()
        run_id = fresh_run_id()
        with (
            _signals_stop(self),
            RunDirectory() as directory,
            Rendezvous(directory.control_endpoint, run_id, self._plan.procs) as rendezvous,
            Children(self._launcher) as children,
            _telling_the_end(self._observer),
        ):
            watch = self._watch(rendezvous, children)
            started_s = None
            error = None
            try:
                self._launch(children, directory, run_id)
                self._meet(watch, rendezvous)
                started_s = now_s()
                watch.collect()
                watch.farewell()
                _require_finished(watch.collected.done)
            except KernbenchError as problem:
                error = problem
                watch.abort(problem)
        ended_s = now_s()
        started_s = started_s or ended_s
        return RunResult(watch.collected, error, started_s - began_s, ended_s - started_s)

    def stop(self, signum: int = signal.SIGINT) -> None:
        """End the run within a few seconds, as if `signum` had arrived. Safe in signal handlers and other threads."""
        self._stop_signal = signum

    def _watch(self, rendezvous: Rendezvous, children: Children) -> Watch:
        sips_of_lp, timeout_s = self._plan.sips_of_lp, self._plan.timeout_s
        return Watch(
            rendezvous, children, sips_of_lp, timeout_s, lambda: self._stop_signal, self._observer
        )

    def _launch(self, children: Children, directory: RunDirectory, run_id: str) -> None:
        for lp, sips in enumerate(self._plan.sips_of_lp):
            endpoint, world_size = directory.control_endpoint, self._plan.sips
            children.start(LpSpec(endpoint, run_id, lp, sips, world_size, directory.path, getpid()))
        self._observer.launched(children.pids)

    def _meet(self, watch: Watch, rendezvous: Rendezvous) -> None:
        hellos = watch.gather(Hello)
        endpoints = tuple(hellos[lp].endpoint for lp in range(self._plan.procs))
        rendezvous.broadcast(Peers(endpoints, self._plan.sips_of_lp, self._plan.job))
        expected = self._plan.config.hash
        for lp, ready in watch.gather(Ready).items():
            if ready.config_hash != expected:
                raise ProtocolError(
                    f"LP {lp}",
                    f"its config hash is {ready.config_hash}, the coordinator's {expected}",
                )
        rendezvous.broadcast(Start())


def _require_finished(done: Mapping[int, Done]) -> None:
    reports = [report for lp in sorted(done) for report in done[lp].sips]
    if all(report.finished for report in reports):
        broken = [report for report in reports if report.broken_law]
        if broken:
            raise InvariantError(f"sip {broken[0].sip} at the end of the run", broken[0].broken_law)
        return
    raise deadlock(reports)


@contextmanager
def _telling_the_end(observer: RunObserver) -> Generator[None]:
    try:
        yield
    finally:
        observer.ended()


@contextmanager
def _signals_stop(session: Session) -> Generator[None]:
    """SIGINT and SIGTERM end the session in its own time; a handler of the caller's for SIGTERM stays in force."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, _: FrameType | None) -> None:
        session.stop(signum)

    theirs = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}
    ours = [s for s in theirs if s == signal.SIGINT or theirs[s] == signal.SIG_DFL]
    for signum in ours:
        signal.signal(signum, stop)
    try:
        yield
    finally:
        for signum in ours:
            signal.signal(signum, theirs[signum])
