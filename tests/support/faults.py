"""Faults of a run over hosts, on a busy machine, and what every process must do about them."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from runtime.core.wallclock import now_s, sleep_s
from tests.support.network import Host, Network, Started
from tests.support.node_runs import BENCH, LIMIT_S, ByHand, NodeRun, Program, in_blocks

RANKS = 4
NOTICED_S = 5.0
"""Longest time from a fault to the end of every process (docs/failures.md)."""
LATEST_S = 3.0
"""The latest moment of a fault, after all ranks have begun."""
HELLO_BYTES = 10_000
"""A Hello is longer, since it has all modules of its process; what comes before it is shorter."""
ERROR = "kernbench: error: "
OTHER_HOST = r"\(ranks? [\d-]+\) on kb2"
LONG_PROGRAM = """
from kernbench import torch

dist = torch.distributed
dist.init_process_group("ahbm")
x = torch.ones(256)
dist.all_reduce(x, op=dist.ReduceOp.MAX)
x.numpy()
print("begun", flush=True)
for _ in range(1_000_000):
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    x.numpy()
"""
_END_OF_AN_LP = re.compile(r"kernbench: LP \d+ \(rank (\d+)\) on .* ends at ")
_BEGIN_OF_A_REASON = re.compile(r"^kernbench: LP .* ends at [^:]*: ")
_TIME = re.compile(r"\b[\d,]+\.\d{3} ns\b")
_SPIN = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@dataclass(frozen=True)
class Fault:
    """A fault in a run. `act` causes it, and a reason of the others must match `named`.

    `silenced` is the process that cannot report anything, and `stopped` whether it exists after the
    fault.
    """

    named: str
    act: Callable[[], object]
    silenced: Started | None = None
    stopped: bool = False

    @property
    def named_early(self) -> str:
        """The same as `named`, before the hosts of all ranks are known."""
        return self.named.removesuffix(r" on kb2").removesuffix(r" on kb\d")


def cut(run: NodeRun, draw: Random) -> Fault:
    """The cable of a host is pulled."""
    # The coordinator, which is on the first host, sees the others leave in either case.
    return Fault(OTHER_HOST, draw.choice(hosts_of(run)).cut)


def drop(run: NodeRun, draw: Random) -> Fault:
    """The switch drops every frame of a host."""
    return Fault(OTHER_HOST, draw.choice(hosts_of(run)).drop)


def stop_an_lp(run: NodeRun, draw: Random) -> Fault:
    """A process other than the coordinator stops, as in a debugger."""
    return _stopped(run, draw.randrange(1, len(run.processes)))


def stop_the_coordinator(run: NodeRun, draw: Random) -> Fault:
    """The process of the coordinator stops."""
    return _stopped(run, 0)


def kill_an_lp(run: NodeRun, draw: Random) -> Fault:
    """A process other than the coordinator is killed."""
    return _killed(run, draw.randrange(1, len(run.processes)))


def kill_the_coordinator(run: NodeRun, draw: Random) -> Fault:
    """The process of the coordinator is killed."""
    return _killed(run, 0)


FAULTS = {
    "cable cut": cut,
    "frames dropped": drop,
    "SIGSTOP of an LP": stop_an_lp,
    "SIGSTOP of the coordinator": stop_the_coordinator,
    "kill -9 of an LP": kill_an_lp,
    "kill -9 of the coordinator": kill_the_coordinator,
}


def _stopped(run: NodeRun, rank: int) -> Fault:
    process = run.processes[rank]
    return Fault(_name(rank), lambda: process.send(signal.SIGSTOP), process, stopped=True)


def _killed(run: NodeRun, rank: int) -> Fault:
    process = run.processes[rank]
    return Fault(_name(rank), lambda: process.send(signal.SIGKILL), process)


def _name(rank: int) -> str:
    return rf"\(rank {rank}\) on kb\d" if rank else "the coordinator"


@contextmanager
def busy_cores(count: int = 2) -> Generator[None]:
    """Processes that use the cores; they end with this process, at the latest."""
    processes = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def begun_run(by_hand: ByHand, network: Network, folder: Path) -> NodeRun:
    """A run of two hosts with two ranks each, in which all ranks have computed."""
    script = folder / "long.py"
    script.write_text(LONG_PROGRAM)
    run = by_hand.start(in_blocks(network.hosts[:2], RANKS), Program(RANKS, (str(script),)))
    deadline_s = now_s() + LIMIT_S
    while not all("begun" in each.out for each in run.processes):
        assert now_s() < deadline_s, run.texts()
        assert run.codes == [None] * RANKS, run.texts()
        sleep_s(0.01)
    return run


def waiting_run(by_hand: ByHand, network: Network) -> NodeRun:
    """A run of which three ranks are connected to the coordinator, and wait for the fourth."""
    program = Program(RANKS, BENCH.words)
    run = by_hand.start(in_blocks(network.hosts[:2], RANKS)[:-1], program, absent=1)
    deadline_s = now_s() + LIMIT_S
    while not _have_joined(run, network.hosts[0]):
        assert now_s() < deadline_s, run.texts()
        sleep_s(0.05)
    return run


def _have_joined(run: NodeRun, host: Host) -> bool:
    received = host.received(run.master)
    return sum(each > HELLO_BYTES for each in received) == len(run.processes)


def seconds_until_ended(run: NodeRun, fault: Fault) -> float:
    """Cause the fault; returns the time until every process has ended, except a stopped one."""
    stopped = fault.silenced.pid if fault.silenced and fault.stopped else None
    began_s = now_s()
    fault.act()
    # A process that does not end is the finding, so the wait is longer than the limit.
    while left := _left(run, stopped):
        if now_s() - began_s > 3 * NOTICED_S:
            raise AssertionError(f"after {3 * NOTICED_S} s these run: {left}\n{run.texts()}")
        sleep_s(0.02)
    seconds = now_s() - began_s
    # The commands that entered the hosts end a little later.
    for process in run.processes:
        if not (process is fault.silenced and fault.stopped):
            process.wait(NOTICED_S)
    return seconds


def check_reasons(run: NodeRun, fault: Fault) -> None:
    """Every process that could has printed one line with the reason, and has failed."""
    for process in run.processes:
        if process is not fault.silenced:
            assert process.code not in (0, None), run.texts()
    assert "Traceback" not in run.texts(), run.texts()
    lines = [*reasons_of_coordinator(run), *reasons_of_lps(run).values()]
    for line in lines:
        assert re.search(r"\bkb\d\b", line), f"no host: {line}"
        assert re.search(r"\branks? \d", line), f"no rank: {line}"
        assert _TIME.search(line), f"no simulated time: {line}"
    silenced = run.processes.index(fault.silenced) if fault.silenced else None
    assert len(reasons_of_coordinator(run)) == (silenced != 0), run.texts()
    # The LP of rank 0 is a child of the coordinator, and prints where that prints.
    expected = {rank for rank in range(RANKS) if not rank or rank != silenced}
    assert reasons_of_lps(run).keys() == expected, run.texts()
    reasons = [_BEGIN_OF_A_REASON.sub("", line) for line in lines]
    assert any(re.search(fault.named, reason) for reason in reasons), run.texts()


def check_reasons_of_waiting(run: NodeRun, fault: Fault) -> None:
    """The checks of `check_reasons`, in a run without simulated time, of ranks and not of LPs."""
    lines = list[str]()
    for rank, process in enumerate(run.processes):
        if process is not fault.silenced:
            assert process.code not in (0, None), run.texts()
            begin = f"kernbench: rank {rank} on {process.host.name} "
            found = [line for line in process.err.splitlines() if line.startswith(begin)]
            assert len(found) == 1, run.texts()
            lines += [*found, *(reasons_of_coordinator(run) if rank == 0 else ())]
    assert "Traceback" not in run.texts()
    assert any(re.search(fault.named_early, line) for line in lines), run.texts()


def check_report(run: NodeRun) -> None:
    """The coordinator has written what had arrived, marked as a failure."""
    report = run.report
    assert report["error"]
    assert not report["passed"]
    assert report["sim_time_ns"] > 0
    records = (run.directory / "oplog.jsonl").read_text().splitlines()
    assert len(records) > 1


def reasons_of_coordinator(run: NodeRun) -> list[str]:
    """The lines of the process of rank 0 that are errors."""
    return [line for line in run.processes[0].err.splitlines() if line.startswith(ERROR)]


def reasons_of_lps(run: NodeRun) -> dict[int, str]:
    """The line with which each LP ends, by rank; one LP prints no more than one."""
    found = [
        (int(match[1]), line)
        for process in run.processes
        for line in process.err.splitlines()
        if (match := _END_OF_AN_LP.match(line))
    ]
    assert len(dict(found)) == len(found), run.texts()
    return dict(found)


def hosts_of(run: NodeRun) -> Sequence[Host]:
    """The hosts of a run, in order."""
    return list({each.host.name: each.host for each in run.processes}.values())


def _left(run: NodeRun, stopped: int | None) -> dict[int, str]:
    """The processes that run, on all hosts."""
    return {
        pid: words
        for host in hosts_of(run)
        for pid, words in host.processes().items()
        if pid != stopped
    }
