"""A point process: measures one point after the other for a worker, which can kill it at any time.

    python -P -m kernbench.points.child CONNECTION PID

CONNECTION is an inherited file descriptor. The worker `PID` sends tasks, and gets for each one the
message `STARTED`, when everything is imported and the simulation begins, and then a `PointResult`.
The process ends when the worker has closed the connection or has ended, and when no task arrives
for a minute, so that an idle worker of a cluster holds no memory.
"""

import gc
import pickle  # noqa: TID251 - of the parent process, which has started this one
import resource
import sys
import traceback
from multiprocessing.connection import Connection
from signal import SIG_IGN, SIGINT, signal
from socket import gethostname

import msgspec

from kernbench.points import code
from kernbench.points.task import Limits, OtherCodeError, PointCode, PointResult, PointTask
from runtime.core.code.package_check import check_packages
from runtime.core.errors import InvariantError, KernbenchError, UsageError
from sip_node.lifeline import Ending, follow, is_orphan

STARTED = b""
IDLE_S = 60.0
"""Seconds without a task after which the process ends, with exit code 0."""


def main(connection: Connection, parent: int) -> None:
    """Measure points until the worker ends the connection."""
    # Ctrl-C reaches every process of the terminal. The driver reports it, and ends this process.
    signal(SIGINT, SIG_IGN)
    follow(lambda: "its worker has ended" if is_orphan(parent) else "", Ending())
    while connection.poll(IDLE_S):
        try:
            task: PointTask = pickle.loads(connection.recv_bytes())  # noqa: S301 - of the parent process
        except EOFError:
            return
        result = _measured(connection, task)
        sys.stdout.flush()
        sys.stderr.flush()
        connection.send_bytes(msgspec.msgpack.encode(result))


def _measured(connection: Connection, task: PointTask) -> PointResult:
    host = gethostname()
    try:
        _limit(task.limits)
        sys.path[:0] = [folder for folder in task.code.paths if folder not in sys.path]
        check_packages()
        # Before the import: other code may have another meaning of the payload.
        _require_equal(task.code)
        try:
            measure, point = pickle.loads(task.payload)  # noqa: S301 - as above
        except (ImportError, AttributeError, UsageError) as error:
            raise OtherCodeError(f"it cannot import the study: {error}") from error
        _require_equal(task.code)
        connection.send_bytes(STARTED)
        return PointResult("row", host, msgspec.msgpack.encode(measure(point)))
    except OtherCodeError as error:
        return PointResult("refused", host, text=str(error))
    except MemoryError:
        return PointResult("fault", host, text=_out_of_memory(task.limits))
    except Exception as error:  # noqa: BLE001 - of the user's function
        return PointResult("fault", host, text=reason(error), detail=details(error))
    finally:
        collect()


def _require_equal(expected: PointCode) -> None:
    if problem := code.difference(expected):
        raise OtherCodeError(problem)


def reason(error: BaseException) -> str:
    """The error in one line."""
    text = str(error).strip().partition("\n")[0]
    # What kernbench raises on purpose is a sentence; the name of the class adds nothing.
    if isinstance(error, KernbenchError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def details(error: BaseException) -> str:
    """The traceback of an error that kernbench does not raise on purpose; "" for others."""
    if isinstance(error, KernbenchError) and not isinstance(error, InvariantError):
        return ""
    return "".join(traceback.format_exception(error)).rstrip()


def collect() -> None:
    """Delete what a point has left in memory.

    The parts of a simulated machine refer to each other, so only the collector finds them. No
    collection during a run deletes anything (`runtime.core.garbage_collection`), and nearly all of
    the time of this process is in runs: without this one, 30 MB and more stay for each point.
    """
    gc.collect()


def _limit(limits: Limits) -> None:
    """Bound the memory that this process and its children can write to, each of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = limits.memory_bytes or hard
    # An unlimited hard limit is -1.
    soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _out_of_memory(limits: Limits) -> str:
    if limits.memory_bytes:
        return f"out of memory: it needs more than {limits.memory_bytes >> 20} MiB (--point-memory)"
    return "out of memory"


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])), int(sys.argv[2]))
