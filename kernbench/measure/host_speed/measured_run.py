"""One run of the command as a whole: wall time, CPU time and peak memory of all its processes."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from runtime.core.wallclock import now_s

_PERIOD_S = 0.05
_PROC = Path("/proc")


@dataclass(frozen=True)
class MeasuredRun:
    """A run from the start of the command to its exit.

    `run_s` is the part of `wall_s` after start-up. `cpu_s` are the user and system seconds of all
    processes. `peak_mib` is the largest sum of their memory, with shared pages counted once (PSS),
    in samples; 0 where the system has no `/proc`.
    """

    wall_s: float
    run_s: float
    cpu_s: float
    peak_mib: float
    digest: str


def measure(command: Sequence[str]) -> MeasuredRun:
    """Run a command that writes `run.json`; `CalledProcessError` if it fails."""
    with tempfile.TemporaryDirectory() as out:
        began_s = now_s()
        child = subprocess.Popen([*command, "--out", out], stdout=subprocess.DEVNULL)  # noqa: S603
        memory = _PeakMemory(child.pid)
        # With the usage of the processes that it has waited for.
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall_s = now_s() - began_s
        memory.stop()
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, list(command))
        report = json.loads((Path(out) / "run.json").read_text())
    return MeasuredRun(
        wall_s=wall_s,
        run_s=report["wall_s"],
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mib=memory.peak_bytes / 2**20,
        digest=report["digest"],
    )


class _PeakMemory:
    """Samples the memory of a process and its children in a thread."""

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self._pid, self._ended = pid, Event()
        self._thread = Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(_PERIOD_S):
            pids = [self._pid, *_children(self._pid)]
            self.peak_bytes = max(self.peak_bytes, sum(map(_pss_bytes, pids)))


def _children(pid: int) -> list[int]:
    try:
        pids = (_PROC / f"{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in pids]


def _pss_bytes(pid: int) -> int:
    try:
        lines = (_PROC / f"{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
