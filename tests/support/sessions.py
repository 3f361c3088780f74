"""Sessions on fake LPs, and checks that nothing of them is left."""

import os
import select
import sys
from contextlib import suppress
from pathlib import Path

from coordinator.launch.launcher import InterpreterLauncher
from coordinator.launch.placement import Placement
from coordinator.plan import Plan, ProgramSpec, load_config
from coordinator.session import RunResult, Session
from runtime.wire.control import Status

ROOT = Path(__file__).parents[2]
FAKE_LP = Path(__file__).parent / "fake_lp.py"


def fake_launcher(*behaviours: str) -> InterpreterLauncher:
    """LP k behaves as the k-th of `behaviours`, or as the last one."""
    return InterpreterLauncher((sys.executable, "-P", str(FAKE_LP), ",".join(behaviours)))


def plan(
    sips: int = 2, procs: int | None = None, *, timeout_s: float = 30.0, exit_s: float = 10.0
) -> Plan:
    return Plan(
        config=load_config(None, None, sips),
        program=ProgramSpec("bench", "fake", "fake:fake"),
        procs=procs or sips,
        timeout_s=timeout_s,
        exit_s=exit_s,
    )


class Recorder:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.pids: tuple[int, ...] = ()
        self.statuses: list[tuple[Status, tuple[int, ...]]] = []
        self.has_ended = False

    def launched(self, pids: tuple[int, ...]) -> None:
        self.pids = pids

    def placed(self, placement: Placement, sips_of_lp: tuple[tuple[int, ...], ...]) -> None:
        self.placement = placement

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        self.statuses.append((status, sips))

    def ended(self) -> None:
        self.has_ended = True


def run_fakes(
    *behaviours: str, sips: int = 2, timeout_s: float = 30.0
) -> tuple[RunResult, Recorder]:
    recorder = Recorder()
    result = Session(plan(sips, timeout_s=timeout_s), fake_launcher(*behaviours), recorder).run()
    return result, recorder


def is_running(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def wait_until_gone(pid: int, timeout_s: float) -> bool:
    """True when the process has ended within `timeout_s`; it need not be a child of this one."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)
