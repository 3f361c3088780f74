"""Measures tasks in point processes: what an executor calls, in any of its processes and threads.

A point process can be killed, by a limit or by the system, without any loss: its worker starts
another one. Each thread has its own, so it is known which point a death concerns.
"""

import os
import pickle  # noqa: TID251 - for a child of this process
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf
from multiprocessing import Pipe
from signal import Signals
from socket import gethostname
from weakref import finalize

import msgspec

from coordinator.launch.launcher import lp_environment
from kernbench.points.task import Limits, PointResult, PointTask
from kernbench.points.worker_limits import cancellation, memory_of_worker
from runtime.core.wallclock import now_s

_IDLE = 0
"""Exit code of a point process that has waited for a task in vain."""
_GRACE_S = 5.0
_PERIOD_S = 0.5
"""Seconds between two tests whether a task has been cancelled."""
_MOST_OUTPUT = 1 << 16
"""Bytes of what a point has printed that are kept, the last ones."""


class PointProcess:
    """A child of this process that measures points, started with the first one."""

    def __init__(self) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as this object
        ours, theirs = Pipe()
        file = theirs.fileno()
        # `-P` keeps the working directory off the import path: a module of the user there must not
        # hide a package.
        module = ("-P", "-m", "kernbench.points.child")
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, *module, str(file), str(os.getpid())],
            pass_fds=(file,),
            env=lp_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )
        theirs.close()
        self._connection = ours
        # The thread that uses this object may end, or this process, without a last call.
        self._release = finalize(self, _release, self._process, ours.close, self._output.close)

    def measured(self, task: PointTask) -> PointResult | None:
        """The result of the task; None if the process had ended for lack of tasks before."""
        started = False
        try:
            self._connection.send_bytes(pickle.dumps(task))
            # Empty when the point begins, if it does. The import before it takes what it takes.
            message = self._connection.recv_bytes()
            if not message:
                started = True
                problem = self._waited(task.limits)
                if problem is not None:
                    return problem
                message = self._connection.recv_bytes()
        except (EOFError, OSError):
            return self._died(task, started=started)
        result = msgspec.msgpack.decode(message, type=PointResult)
        return msgspec.structs.replace(result, output=self._printed())

    @property
    def is_running(self) -> bool:
        """Whether the process can measure a point."""
        return self._process.poll() is None

    def end(self) -> None:
        """Kill the process; without effect if it has ended."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and release what this object holds."""
        self._release()

    def _waited(self, limits: Limits) -> PointResult | None:
        """Wait for the result; in its place, that of a task which must not go on."""
        # In this thread, which is that of the task for a cluster.
        is_cancelled = cancellation()
        until_s = now_s() + (limits.seconds or inf)
        while not self._connection.poll(min(_PERIOD_S, max(0.0, until_s - now_s()))):
            if now_s() >= until_s:
                return self._too_slow(limits)
            if is_cancelled():
                self.end()
                return PointResult("lost", gethostname(), text="cancelled", output=self._printed())
        return None

    def _too_slow(self, limits: Limits) -> PointResult:
        self.end()
        return PointResult(
            "fault",
            gethostname(),
            text=f"it takes more than {limits.seconds:g} s (--point-timeout)",
            output=self._printed(),
        )

    def _died(self, task: PointTask, *, started: bool) -> PointResult | None:
        try:
            code = self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self.end()
            code = self._process.wait()
        if code == _IDLE and not started:
            return None
        text = _exit_text(code)
        if task.limits.memory_bytes:
            text += f", with at most {task.limits.memory_bytes >> 20} MiB of memory"
        return PointResult("lost", gethostname(), text=text, output=self._printed())

    def _printed(self) -> str:
        """Output of the process since the last call."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _MOST_OUTPUT))
        content = self._output.read()
        # The process appends at its own position, which it shares with this one.
        self._output.seek(0)
        self._output.truncate()
        return content.decode(errors="replace")


class _Processes:
    """The point processes of this process, one for each of its threads that has measured."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._lock = threading.Lock()
        self._all: set[PointProcess] = set()

    def of_this_thread(self) -> PointProcess:
        """The running one of the calling thread."""
        own: PointProcess | None = getattr(self._own, "process", None)
        with self._lock:
            if own is not None and own in self._all:
                if own.is_running:
                    return own
                self._all.remove(own)
                own.close()
            own = PointProcess()
            self._all.add(own)
        self._own.process = own
        return own

    def end(self) -> None:
        """End all."""
        with self._lock:
            for each in self._all:
                each.end()
            self._all.clear()


_processes = _Processes()
# Module state, which kernbench avoids elsewhere: an executor calls a function, and has no object of
# ours that could hold the processes between two tasks.


def run_task(task: PointTask) -> PointResult:
    """Measure a point in the point process of the calling thread."""
    memory = memory_of_worker()
    if memory and not 0 < task.limits.memory_bytes <= memory:
        task = replace(task, limits=replace(task.limits, memory_bytes=memory))
    while True:
        result = _processes.of_this_thread().measured(task)
        if result is not None:
            return result


def end_point_processes() -> None:
    """Kill the point processes of this process; their points are lost."""
    _processes.end()


def _release(process: subprocess.Popen[bytes], *closings: Callable[[], None]) -> None:
    process.kill()
    process.wait()
    for close in closings:
        close()


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"killed by {Signals(-code).name}"
    return f"killed by signal {-code}"
