"""Hosts on one machine: namespaces of Linux with a switch between them, for tests as root.

A host has a network, process numbers, a host name, a `/proc`, a `/dev/shm`, an `/etc/hosts` and a
TMPDIR of its own; it shares the file system otherwise, as the nodes of a cluster share a home. A
pair of virtual Ethernet devices joins it to a bridge, which has a namespace of its own, so nothing
is added to the network of the machine. Each namespace exists as long as its first process, which
ends when the pipe to it closes: a killed test leaves no namespace, no device and no process.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from runtime.core.wallclock import now_s, sleep_s
from tests.support.runs import ROOT

TOOLS = ("bridge", "ip", "mount", "nsenter", "ss", "unshare")
LOOPBACK = ("127.", "[::1]", "[::ffff:127.")
LAUNCHERS = (
    "GROUP_",
    "KERNBENCH_",
    "LOCAL_",
    "MASTER_",
    "OMPI_",
    "PMIX_",
    "PMI_",
    "RANK",
    "ROLE_",
    "SLURM_",
    "TORCHELASTIC_",
    "WORLD_SIZE",
)
"""Beginnings of the names of variables with which launchers describe a process."""
_FIRST_PROCESS = (
    # Ended processes without a parent are the first process's to collect.
    "trap '' CHLD; set -e; hostname {name}; ip link set lo up; "
    "mount -t tmpfs tmpfs /dev/shm; mount --bind {names} /etc/hosts; echo ready; exec cat"
)
_START_S = 60.0
_LOOK_S = 0.002


class NetworkUnavailable(Exception):  # noqa: N818 - a reason to skip tests, no error
    """Why this machine has no namespaces for the test."""


@dataclass(frozen=True)
class Started:
    """A process on a host, and the files with what it prints."""

    host: "Host"
    process: subprocess.Popen[bytes]
    out_file: Path
    err_file: Path

    @property
    def out(self) -> str:
        return self.out_file.read_text()

    @property
    def err(self) -> str:
        return self.err_file.read_text()

    @property
    def pid(self) -> int:
        """Process id outside of the host."""
        return _child_of(self.process)

    @property
    def code(self) -> int | None:
        """The exit code, that of a signal negative; None while it runs."""
        return self.process.poll()

    def send(self, signum: int) -> None:
        """Send a signal to the process. After SIGSTOP, `resume` is the reverse."""
        os.kill(self.pid, signum)

    def resume(self) -> None:
        """Continue a stopped process; the command that entered the host stops with it."""
        with suppress(ProcessLookupError, NetworkUnavailable):
            self.send(signal.SIGCONT)
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process, also a stopped one."""
        with suppress(ProcessLookupError, NetworkUnavailable):
            self.send(signal.SIGKILL)
        self.resume()
        self.process.wait(_START_S)

    def wait(self, timeout_s: float) -> int:
        """The exit code. Raises `subprocess.TimeoutExpired`."""
        return self.process.wait(timeout_s)


@dataclass(frozen=True)
class Namespace:
    """Namespaces of Linux, held by a process."""

    name: str
    holder: subprocess.Popen[bytes]
    first_pid: int

    @classmethod
    def created(cls, name: str, names: Path) -> Self:
        """Raises `NetworkUnavailable`."""
        script = _FIRST_PROCESS.format(name=name, names=shlex.quote(str(names)))
        spaces = ("--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
        holder = subprocess.Popen(
            ["unshare", *spaces, "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != b"ready\n":
            holder.wait(_START_S)
            reason = holder.stderr.read().decode().strip().replace("\n", "; ")
            raise NetworkUnavailable(f"no namespaces: {reason}")
        return cls(name, holder, _child_of(holder))

    def command(self, *words: str, only_network: bool = False) -> list[str]:
        """The command line that runs `words` here, in the working directory of the caller."""
        spaces = ("--net",) if only_network else ("--net", "--uts", "--pid", "--mount")
        entered = ["nsenter", "--target", str(self.first_pid), *spaces]
        # The root directory of another mount namespace becomes the working directory.
        return [*entered, "sh", "-c", 'cd "$0" && exec "$@"', str(Path.cwd()), *words]

    def run(self, words: str) -> str:
        """The output of a command of the machine with this network. Raises `NetworkUnavailable`."""
        command = self.command(*words.split(), only_network=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NetworkUnavailable(f"{words}: {done.stderr.strip()}")
        return done.stdout

    def end(self) -> None:
        """End all processes, and wait until they are gone; devices and sockets go with them."""
        processes = [self.first_pid, *self.processes()]
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.holder.wait(_START_S)
        for pipe in (self.holder.stdin, self.holder.stdout, self.holder.stderr):
            assert pipe is not None
            pipe.close()

    def processes(self) -> dict[int, str]:
        """Number outside of the host and command line of each process that runs here, except the
        first process.
        """
        found = dict[int, str]()
        space = _space_of(self.first_pid)
        for folder in Path("/proc").glob("[0-9]*"):
            pid = int(folder.name)
            with suppress(OSError):
                if pid != self.first_pid and _space_of(pid) == space and not _is_zombie(pid):
                    words = (folder / "cmdline").read_bytes()
                    found[pid] = words.replace(b"\0", b" ").decode(errors="replace").strip()
        return found


@dataclass(frozen=True, eq=False)
class Host(Namespace):
    """One host. `number` counts from 1; `folder` has its TMPDIR and what its processes print."""

    number: int
    folder: Path
    switch: Namespace
    started: list[Started] = field(default_factory=list[Started])

    @property
    def address(self) -> str:
        return f"10.77.0.{self.number}"

    @property
    def address6(self) -> str:
        return f"fd77::{self.number}"

    @property
    def port(self) -> str:
        """The device at the other end of its cable, in the switch."""
        return f"port{self.number}"

    @property
    def tmp(self) -> Path:
        """The TMPDIR of its processes."""
        return self.folder / self.name

    def connect(self) -> None:
        """Create the cable to the switch. Raises `NetworkUnavailable`."""
        pair = f"ip link add {self.port} type veth peer name eth0 netns {self.first_pid}"
        self.switch.run(pair)
        self.switch.run(f"ip link set {self.port} master br0 up")
        self.run(f"ip addr add {self.address}/24 dev eth0")
        self.run(f"ip addr add {self.address6}/64 dev eth0 nodad")
        self.run("ip link set eth0 up")

    def cut(self) -> None:
        """Pull the cable: the host loses its carrier."""
        self.switch.run(f"ip link set {self.port} down")

    def drop(self) -> None:
        """Let the switch drop every frame from and to this host, which keeps its carrier."""
        # Not by the state of the port, which Linux sets anew when a carrier has come.
        self.switch.run(f"ip link set {self.port} nomaster")

    def restore(self) -> None:
        """Undo `cut` and `drop`."""
        self.switch.run(f"ip link set {self.port} master br0 up")

    def start(self, *words: str, variables: Mapping[str, str] | None = None) -> Started:
        """Start a command in the checkout, without the variables of launchers."""
        files = f"{self.name}-{len(self.started)}"
        out, err = (self.folder / f"{files}.{end}" for end in ("out", "err"))
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                self.command(*words),
                cwd=ROOT,
                env={**self.environment(), **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
            )
        self.started.append(Started(self, process, out, err))
        return self.started[-1]

    def end(self) -> None:
        # As long as a process of a namespace is not collected, its first process does not end.
        for each in self.started:
            each.kill()
        super().end()

    def environment(self) -> dict[str, str]:
        """The variables of a process of this host."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
        ours.pop("PYTHONDONTWRITEBYTECODE", None)
        return ours | {"TMPDIR": str(self.tmp), "HOME": str(self.folder)}

    def listeners(self) -> set[str]:
        """`address:port` of each TCP socket that listens here; of all addresses, `0.0.0.0:port`."""
        lines = self.run("ss --no-header --listening --tcp --numeric").splitlines()
        return {line.split()[3] for line in lines}

    def received(self, endpoint: str) -> list[int]:
        """The bytes received by each connection to `endpoint`, an address of this host:port."""
        words = f"ss --no-header --tcp --numeric --info state established src {endpoint}"
        return [int(each) for each in re.findall(r"bytes_received:(\d+)", self.run(words))]

    def open_listeners(self) -> set[str]:
        """The listeners which other hosts can reach."""
        return {each for each in self.listeners() if not each.startswith(LOOPBACK)}

    def left_over(self) -> list[str]:
        """Files and directories in TMPDIR and in shared memory."""
        memory = Path(f"/proc/{self.first_pid}/root/dev/shm")
        return sorted(str(path) for folder in (self.tmp, memory) for path in folder.iterdir())


@dataclass(frozen=True)
class Network:
    """Hosts, and the switch between them."""

    hosts: tuple[Host, ...]
    switch: Namespace

    @classmethod
    @contextmanager
    def of(cls, count: int, folder: Path) -> Generator[Self]:
        """`count` hosts with names kb1, kb2 ... Raises `NetworkUnavailable`."""
        check_available()
        numbers = range(1, count + 1)
        names = folder / "names"
        names.write_text(
            "127.0.0.1 localhost\n::1 localhost\n"
            + "".join(f"10.77.0.{number} kb{number}\n" for number in numbers)
        )
        with ExitStack() as stack:
            switch = Namespace.created("switch", names)
            stack.callback(switch.end)
            switch.run("ip link add br0 type bridge stp_state 0")
            switch.run("ip addr add 10.77.0.254/24 dev br0")
            switch.run("ip link set br0 up")
            hosts = list[Host]()
            for number in numbers:
                space = Namespace.created(f"kb{number}", names)
                host = Host(space.name, space.holder, space.first_pid, number, folder, switch)
                stack.callback(host.end)
                host.tmp.mkdir()
                host.connect()
                hosts.append(host)
            yield cls(tuple(hosts), switch)


def check_available() -> None:
    """Raises `NetworkUnavailable` where the machine lacks what a network needs."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise NetworkUnavailable(f"needs {', '.join(missing)} (packages iproute2 and util-linux)")
    if os.geteuid():
        raise NetworkUnavailable("needs root: hosts are network namespaces")


def _child_of(process: subprocess.Popen[bytes]) -> int:
    """The child of a command that enters or creates namespaces: the process inside."""
    file = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline_s = now_s() + _START_S
    while now_s() < deadline_s:
        with suppress(OSError):
            children = file.read_text().split()
            if children:
                return int(children[0])
        if process.poll() is not None:
            break
        sleep_s(_LOOK_S)
    raise NetworkUnavailable("the process inside of the namespaces has ended")


def _space_of(pid: int) -> int:
    return Path(f"/proc/{pid}/ns/pid").stat().st_ino


def _is_zombie(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0]
    return state in "ZX"
