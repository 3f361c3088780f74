"""PHOLD on `simulus`, a parallel event simulator in Python, beside the loop of `pdes`.

`python -m kernbench.measure.host_speed.phold_simulus --lps 2` runs one workload on both in as many
processes and prints the ratio of their throughputs. An LP is a simulator of simulus with a mailbox;
the lookahead is the least delay of the mailboxes. Several LPs run in processes of their own (the
SMP mode of simulus: windows of one lookahead, with a barrier after each), a single LP in one.

Both execute the same arrivals, and another number of them is an error. Digests are not compared:
simulus does not define the order of events at one time.
"""

import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import SimpleQueue, set_start_method
from statistics import median
from typing import Any

from kernbench.measure.host_speed.phold import arguments_of, workload_of
from kernbench.measure.host_speed.phold_model import Phold, Workload
from kernbench.measure.host_speed.phold_processes import run_processes
from runtime.core.wallclock import now_s
from runtime.wire.frames import Message

NOT_INSTALLED = "simulus is not installed; `make bench` installs it, or pip install '.[bench]'"


@dataclass(frozen=True)
class SimulusResult:
    """The arrivals that an LP executed, and the wall time of its first event and of its last."""

    arrivals: int
    begin_s: float
    end_s: float


def is_installed() -> bool:
    """The extra `bench` is there."""
    return find_spec("simulus") is not None


class SimulusPhold(Phold):
    """The entities of one LP; their arrivals are events of a simulator of simulus.

    An arrival from another LP comes through the mailbox. After the last one the result goes to
    `results`, from the process that executes the LP.
    """

    def __init__(
        self, workload: Workload, lp: int, lps: int, results: "SimpleQueue[SimulusResult]"
    ) -> None:
        self.simulator = simulus_module().simulator(f"lp{lp}")
        self._group, self._results = None, results
        self._arrivals, self._begin_s = 0, 0.0
        self._mailbox = self.simulator.mailbox(name=_mailbox(lp), min_delay=workload.lookahead_ps)
        self._mailbox.add_callback(self._receive)
        # Of events at one time, the first that is scheduled is the root of the heap.
        self.simulator.sched(self._begin, until=0)
        super().__init__(workload, lp, lps, self._send_apart)
        self.simulator.sched(self._end, until=workload.end_ps)

    def join(self, group: Any) -> None:
        """The synchronised group of the simulator, through which it sends."""
        self._group = group

    def deliver(self, message: Message) -> None:
        """Schedule an arrival as an event of the simulator."""
        self.simulator.sched(self.arrive, *_fields(message), until=message.time_ps)

    def arrive(self, time_ps: int, entity: int, source: int, seq: int) -> None:
        """Execute an arrival, and count it."""
        self._arrivals += 1
        super().arrive(time_ps, entity, source, seq)

    def _send_apart(self, peer: int, message: Message) -> None:
        assert self._group is not None
        delay_ps = message.time_ps - self.simulator.now
        self._group.send(self.simulator, _mailbox(peer), _fields(message), delay_ps)

    def _receive(self) -> None:
        for fields in self._mailbox.retrieve():
            self.arrive(*fields)

    def _begin(self) -> None:
        self._begin_s = now_s()

    def _end(self) -> None:
        self._results.put(SimulusResult(self._arrivals, self._begin_s, now_s()))


def simulus_module() -> Any:
    """The module, which has no types. It takes `--seed` and short options out of `sys.argv`."""
    return import_module("simulus")


def run_simulus(workload: Workload, lps: int) -> tuple[int, float]:
    """Arrivals, and arrivals per second of wall time, with an LP in each of `lps` processes.

    The time counts from the first event to the last, so that the start of processes is left out.
    """
    results: SimpleQueue[SimulusResult] = SimpleQueue()
    models = [SimulusPhold(workload, lp, lps, results) for lp in range(lps)]
    simulators = [model.simulator for model in models]
    group = simulus_module().sync(simulators, enable_smp=lps > 1, smp_ways=lps)
    for model in models:
        model.join(group)
    group.run(until=workload.end_ps + 1)
    of_lps = [results.get() for _ in models]
    arrivals = sum(result.arrivals for result in of_lps)
    wall_s = max(result.end_s for result in of_lps) - min(result.begin_s for result in of_lps)
    return arrivals, arrivals / wall_s


def _mailbox(lp: int) -> str:
    return f"arrivals of LP {lp}"


def _fields(message: Message) -> tuple[int, int, int, int]:
    return message.time_ps, message.target, message.source, message.seq


def _compare(workload: Workload, lps: int) -> float:
    """Print the throughput of both; its ratio."""
    arrivals, theirs = run_simulus(workload, lps)
    ours = run_processes(workload, lps)
    if ours.events != arrivals:
        raise SystemExit(f"{arrivals} arrivals with simulus, {ours.events} on the loop of pdes")
    ratio = ours.events_per_s / theirs
    print(
        f"{arrivals:,} arrivals  simulus {theirs:10,.0f} events/s  "
        f"pdes {ours.events_per_s:10,.0f} events/s  {ratio:5.2f}x"
    )
    return ratio


def main() -> int:
    """Compare on `--lps` processes each; the output ends with the median ratio."""
    given = arguments_of(
        "kernbench.measure.host_speed.phold_simulus",
        "PHOLD on the loop of pdes and on simulus, both on --lps processes",
    )
    if not is_installed():
        sys.exit(f"kernbench: error: {NOT_INSTALLED}")
    # Simulus gives its objects to its processes without pickling, which only a fork can do.
    set_start_method("fork")
    workload = workload_of(given)
    ratios = [_compare(workload, given.lps) for _ in range(given.rounds)]
    print(f"pdes / simulus, --lps {given.lps}: {median(ratios):.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
