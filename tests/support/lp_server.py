"""A process that has imported what an LP imports, and forks itself for each LP of a test.

It is a script, which imports nothing of the tests: the code of an LP is part of a run's report.
A request is a message on the socket whose number is the argument: arguments, environment, working
directory and the numbers of open files, which come with it. The last file is for the exit code.
"""

import fcntl
import json
import os
import resource
import runpy
import select
import signal
import socket
import sys
from typing import Any

import sip_node.lp_process  # noqa: F401 - what this process is for

_LONGEST_REQUEST = 1 << 20
_MOST_FILES = 16
_ABOVE_ALL_TARGETS = 512
_between: list[object] = []


def main() -> None:
    """Fork for every request until the socket is closed by the other side."""
    # As the processes that a launcher starts: an LP unblocks it when it ignores it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    requests = socket.socket(fileno=int(sys.argv[1]))
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    # The process id and the file for the exit code of an LP, by the descriptor of its process.
    running: dict[int, tuple[int, int]] = {}
    while True:
        for ready, _ in poll.poll():
            if ready != requests.fileno():
                poll.unregister(ready)
                _report(ready, *running.pop(ready))
                continue
            message, files, _, _ = socket.recv_fds(requests, _LONGEST_REQUEST, _MOST_FILES)
            if not message:
                return
            *opened, exit_code = files
            pid = os.fork()
            if pid == 0:
                _become_lp(json.loads(message), opened)
                return
            requests.send(pid.to_bytes(8, "little"))
            for file in opened:
                os.close(file)
            process = os.pidfd_open(pid)
            poll.register(process, select.POLLIN)
            running[process] = pid, exit_code


def _report(process: int, pid: int, exit_code: int) -> None:
    _, status = os.waitpid(pid, 0)
    os.write(exit_code, os.waitstatus_to_exitcode(status).to_bytes(2, "little", signed=True))
    os.close(exit_code)
    os.close(process)


def _become_lp(request: dict[str, Any], opened: list[int]) -> None:
    # Away from the numbers that the files are to have.
    above = [fcntl.fcntl(file, fcntl.F_DUPFD, _ABOVE_ALL_TARGETS) for file in opened]
    os.closerange(3, _ABOVE_ALL_TARGETS)
    for file, number in zip(above, request["numbers"], strict=True):
        os.dup2(file, number)
    os.closerange(_ABOVE_ALL_TARGETS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv[1:] = request["arguments"]
    # The addresses of later objects differ from LP to LP, as those of interpreters do.
    _between.extend(object() for _ in range(int.from_bytes(os.urandom(2), "little")))
    runpy.run_module("sip_node", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
