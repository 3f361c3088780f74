"""A process that has imported the simulator, and forks itself for each process of a test.

It is a script, which imports nothing of the tests: the code of an LP is part of a run's report.
A request is a message on the socket whose number is the first argument: a program (`-m` and a
module, or a file) with its arguments, environment, working directory and the numbers of open files,
which come with it. The last file is for the exit code.

With the second argument `torch` the server has imported PyTorch as well, and what the first step of
an optimiser imports: four seconds of each process. The device is connected by the `import torch` of
the fork, as it is elsewhere.
"""

import contextlib
import fcntl
import gc
import importlib.abc
import importlib.machinery
import json
import os
import resource
import runpy
import select
import signal
import socket
import sys
from collections.abc import Sequence
from types import ModuleType
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
    if sys.argv[2:] == ["torch"]:
        _import_torch_without_devices()
    # A collection in a fork would copy the pages of all that the server has imported.
    gc.collect()
    gc.freeze()
    requests = socket.socket(fileno=int(sys.argv[1]))
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    # The process id and the file for the exit code of a fork, by the descriptor of its process.
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
                _become(json.loads(message), opened)
                return
            requests.send(pid.to_bytes(8, "little"))
            for file in opened:
                os.close(file)
            process = os.pidfd_open(pid)
            poll.register(process, select.POLLIN)
            running[process] = pid, exit_code


def _report(process: int, pid: int, exit_code: int) -> None:
    _, status = os.waitpid(pid, 0)
    # The other side may have dropped a process that it has killed, and its file with it.
    with contextlib.suppress(BrokenPipeError):
        os.write(exit_code, os.waitstatus_to_exitcode(status).to_bytes(2, "little", signed=True))
    os.close(exit_code)
    os.close(process)


def _become(request: dict[str, Any], opened: list[int]) -> None:
    # Away from the numbers that the files are to have.
    above = [fcntl.fcntl(file, fcntl.F_DUPFD, _ABOVE_ALL_TARGETS) for file in opened]
    os.closerange(3, _ABOVE_ALL_TARGETS)
    for file, number in zip(above, request["numbers"], strict=True):
        os.dup2(file, number)
    os.closerange(_ABOVE_ALL_TARGETS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    # The addresses of later objects differ from LP to LP, as those of interpreters do.
    _between.extend(object() for _ in range(int.from_bytes(os.urandom(2), "little")))
    match request["command"]:
        case ["-m", module, *arguments]:
            sys.argv[1:] = arguments
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [program, *arguments]:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            sys.argv[:] = [program, *arguments]
            runpy.run_path(program, run_name="__main__")


def _import_torch_without_devices() -> None:
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    # As the device does: where Triton is installed, the compiler leaves its import to scripts.
    package = importlib.import_module("torch.utils._triton")
    package.has_triton_package = lambda: sys.modules.get("triton") is not None
    importlib.import_module("torch._dynamo")
    sys.meta_path.insert(0, _Imported(sys.modules.pop("torch")))


class _Imported(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The first `import torch` of a fork: the module of the server, which loads its devices now."""

    def __init__(self, torch: ModuleType) -> None:
        self._torch, self._spec = torch, torch.__spec__

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module of the server, if it is `torch`."""
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module, which is complete but for its devices."""
        return self._torch

    def exec_module(self, module: ModuleType) -> None:
        """Load the devices as the end of PyTorch's own module does."""
        module.__spec__ = self._spec
        module._import_device_backends()


if __name__ == "__main__":
    main()
