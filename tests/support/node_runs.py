"""Runs whose processes `kernbench node` joins, on the hosts of a network."""

import json
import secrets
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

from runtime.core.wallclock import now_s, sleep_s
from tests.support.network import Host, Started
from tests.support.runs import ROOT
from tests.support.topologies import variant_text

LIMIT_S = 100.0
"""Longest wait for the end of a run: a busy machine is no failure."""
SMALL_CHIPS = {
    "sip__cube_mesh": {"w": 1, "h": 1},
    "cube__pe_layout__pe_per_corner": 1,
    "cube__pe_layout__corners": ["NW", "SE"],
}
PYTHON = sys.executable
NODE = (PYTHON, "-m", "kernbench", "node")
_ports = count(29400)


class Program(NamedTuple):
    """The end of a command line: what a run simulates, with its options."""

    sips: int
    words: tuple[str, ...]

    @property
    def command(self) -> tuple[str, ...]:
        return ("--sips", str(self.sips), "--topology", str(small_topology()), *self.words)


BENCH = Program(8, ())
TIMES_ONLY = Program(
    8, ("--no-data", "--algorithm", "ring", "--min-bytes", "4096", "--max-bytes", "4096")
)
SCRIPT = Program(4, ("examples/linear_regression.py", "--steps", "2"))


@dataclass(frozen=True)
class NodeRun:
    """The processes of a run, by rank, the directory of its reports, and HOST:PORT of rank 0."""

    processes: tuple[Started, ...]
    directory: Path
    master: str = ""

    @property
    def report(self) -> dict[str, Any]:
        return json.loads((self.directory / "run.json").read_text())

    @property
    def codes(self) -> list[int | None]:
        return [each.code for each in self.processes]

    def wait(self, limit_s: float = LIMIT_S) -> Self:
        """Wait until all processes have ended; those that have not are killed, which fails."""
        deadline_s = now_s() + limit_s
        while None in self.codes and now_s() < deadline_s:
            sleep_s(0.02)
        late = [number for number, code in enumerate(self.codes) if code is None]
        for number in late:
            self.processes[number].kill()
        assert not late, f"processes {late} have not ended within {limit_s} s\n{self.texts()}"
        return self

    def succeeded(self) -> dict[str, Any]:
        """The report of a run which must succeed."""
        self.wait()
        assert self.codes == [0] * len(self.processes), self.texts()
        return self.report

    def texts(self) -> str:
        """Output of all processes, for the message of a failed test."""
        return "\n".join(
            f"--- process {number} on {each.host.name}, code {each.code}\n{each.out}{each.err}"
            for number, each in enumerate(self.processes)
        )


@dataclass(frozen=True)
class Secret:
    """A file with the secret of a run."""

    file: Path

    @classmethod
    def created(cls, folder: Path, mode: int = 0o600) -> Self:
        """A new secret in a file with the permissions `mode`."""
        file = folder / f"secret-{secrets.token_hex(4)}"
        file.touch(mode)
        file.chmod(mode)
        file.write_text(secrets.token_hex(32))
        return cls(file)

    @property
    def words(self) -> tuple[str, ...]:
        return ("--secret-file", str(self.file))


@dataclass
class ByHand:
    """Starts runs by hand: each process has --rank, --world and --master."""

    folder: Path
    secret: Secret | None = None
    ipv6: bool = False
    runs: list[NodeRun] = field(default_factory=list[NodeRun])

    def start(
        self,
        hosts: Sequence[Host],
        program: Program,
        *,
        bind: bool = False,
        absent: int = 0,
        variables: Mapping[str, str] | None = None,
    ) -> NodeRun:
        """Start a process of rank r on `hosts[r]`. The first host has the coordinator.

        With `bind`, the address of its host is an option of each process. `absent` ranks more
        belong to the run, which never come.
        """
        first = hosts[0]
        address = f"[{first.address6}]" if self.ipv6 else first.address
        if self.secret is None:
            address = "127.0.0.1"
        directory = self.folder / f"run{len(self.runs)}"
        master = f"{address}:{next(_ports)}"
        common = ["--world", str(len(hosts) + absent), "--master", master]
        common += [*(self.secret.words if self.secret else ()), "--out", str(directory)]
        processes = list[Started]()
        for rank, host in enumerate(hosts):
            own = ["--rank", str(rank), *(("--bind", host.address) if bind else ())]
            words = (*NODE, *own, *common, *program.command)
            processes.append(host.start(*words, variables=variables))
        self.runs.append(NodeRun(tuple(processes), directory, master))
        return self.runs[-1]


def next_port() -> int:
    """A port of a host that no earlier run has used."""
    return next(_ports)


def in_blocks(hosts: Sequence[Host], world: int) -> list[Host]:
    """The host of each rank: consecutive ranks share one, the first hosts have one more."""
    return [hosts[rank * len(hosts) // world] for rank in range(world)]


def round_robin(hosts: Sequence[Host], world: int) -> list[Host]:
    """The host of each rank, where ranks are dealt to the hosts one by one."""
    return [hosts[rank % len(hosts)] for rank in range(world)]


@cache
def small_topology() -> Path:
    """The file of a machine of small chips; it exists until this process ends."""
    file = Path(_folder().name, "small.yaml")
    file.write_text(variant_text(**SMALL_CHIPS))
    return file


@cache
def local_digest(program: Program, *, procs: int | None = 1) -> str:
    """The digest of the run on this machine, by `launch.py`, with `procs` processes."""
    with TemporaryDirectory(prefix="kb-") as folder:
        directory = Path(folder, "run")
        words = [] if procs is None else ["--procs", str(procs)]
        done = subprocess.run(
            [PYTHON, "launch.py", "--out", str(directory), *words, *program.command],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads((directory / "run.json").read_text())["digest"]


def median_null_messages(runs: Sequence[NodeRun]) -> float:
    """The median of the null messages of successful runs."""
    return statistics.median(run.report["sync"]["null_messages"] for run in runs)


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="kb-")
