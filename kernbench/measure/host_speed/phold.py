"""Measures PHOLD on the loop of `pdes`: in one process, in several, and without synchronisation.

`python -m kernbench.measure.host_speed.phold --lps 2` runs it in one process and in two, and prints
the cost of synchronisation. The ceiling is as much work in two processes that exchange nothing:
what this machine can gain at most. What the lookahead allows of it is less (`phold_balance.py`).
`--window-events 10 --event-us 10` gives every process 100 us of work in a lookahead.
"""

import argparse
from hashlib import blake2b
from statistics import median

from kernbench.measure.host_speed.phold_balance import balance
from kernbench.measure.host_speed.phold_model import PholdResult, Workload
from kernbench.measure.host_speed.phold_processes import run_apart, run_processes
from runtime.core.simtime import PS_PER_NS
from runtime.core.wallclock import now_s

_DIGESTS = 5_000
_SAMPLES = 5


def work_of(event_us: float) -> int:
    """The number of digests that take `event_us` on this machine, measured now."""
    digest, fastest_s = blake2b(digest_size=16), float("inf")
    # The fastest of several: other programs only make it slower.
    for _ in range(_SAMPLES):
        begin_s = now_s()
        for _ in range(_DIGESTS):
            digest.hexdigest()
        fastest_s = min(fastest_s, now_s() - begin_s)
    return round(event_us * 1e-6 * _DIGESTS / fastest_s)


def jobs_of(window_events: float, arguments: argparse.Namespace) -> int:
    """Jobs per entity for `window_events` events of each process in a lookahead, at least one.

    A hop takes the lookahead and the mean on average, and a job causes one event a hop.
    """
    per_job = arguments.lookahead_ns / (arguments.lookahead_ns + arguments.mean_ns)
    return max(1, round(window_events * arguments.lps / (arguments.entities * per_job)))


def report(title: str, result: PholdResult, alone: PholdResult) -> str:
    """One line: throughput, its ratio to one process, the synchronisation, and the digest."""
    loops = [lp.statistics for lp in result.lps]
    blocked = sum(loop.blocked_s for loop in loops) / sum(lp.wall_s for lp in result.lps)
    ratio = result.events_per_s / alone.events_per_s
    return (
        f"{title:16}  {result.events_per_s:10,.0f} events/s  {ratio:5.2f}x  "
        f"{sum(lp.cpu_s for lp in result.lps):6.2f} s of CPU  "
        f"{sum(loop.rounds for loop in loops):8,} rounds  "
        f"{sum(loop.messages for loop in loops):9,} messages  "
        f"{sum(loop.null_messages for loop in loops):7,} null messages  "
        f"{blocked:4.0%} blocked  digest {result.digest}"
    )


def arguments_of(program: str, description: str) -> argparse.Namespace:
    """The parameters from the command line of `program`, which ends if one is wrong."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--lps", type=int, default=2, help="processes to compare with one")
    parser.add_argument("--entities", type=int, default=64)
    jobs = parser.add_mutually_exclusive_group()
    jobs.add_argument("--jobs", type=int, default=8, help="jobs that start at each entity")
    jobs.add_argument(
        "--window-events", type=float, help="set --jobs: events of a process in a lookahead"
    )
    parser.add_argument("--lookahead-ns", type=int, default=16, help="least time of a hop")
    parser.add_argument(
        "--mean-ns", type=int, default=16, help="mean of the exponential time added to it"
    )
    parser.add_argument(
        "--spread", type=float, default=0.2, help="probability that a job leaves its entity"
    )
    parser.add_argument("--end-ns", type=int, default=10_000, help="simulated time")
    work = parser.add_mutually_exclusive_group()
    work.add_argument(
        "--work", type=int, default=0, help="digests computed per event, to make events cost more"
    )
    work.add_argument(
        "--event-us", type=float, help="set --work: wall time of an event's work, calibrated here"
    )
    parser.add_argument("--rounds", type=int, default=1, help="repetitions; prints medians")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not 1 <= arguments.lps <= arguments.entities:
        parser.error(
            f"--lps {arguments.lps}: between 1 and the number of entities, {arguments.entities}"
        )
    if arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: at least 1")
    return arguments


def workload_of(given: argparse.Namespace) -> Workload:
    """The workload that the parameters describe; `--event-us` is calibrated now."""
    return Workload(
        entities=given.entities,
        jobs=given.jobs if given.window_events is None else jobs_of(given.window_events, given),
        lookahead_ps=given.lookahead_ns * PS_PER_NS,
        mean_ps=given.mean_ns * PS_PER_NS,
        spread=given.spread,
        end_ps=given.end_ns * PS_PER_NS,
        work=given.work if given.event_us is None else work_of(given.event_us),
        seed=given.seed,
    )


def main() -> int:
    """Run the workload with one LP and with `--lps`; 1 if the digests differ."""
    given = arguments_of(
        "kernbench.measure.host_speed.phold",
        "PHOLD on one process and on several, and as much work without synchronisation",
    )
    workload = workload_of(given)
    print(f"{workload.entities} entities, {workload.jobs} jobs each, {workload.work} digests a job")
    ceilings, digests = list[float](), set[str]()
    for _ in range(given.rounds):
        alone = run_processes(workload, 1)
        print(report("1 LP", alone, alone))
        apart = run_apart(workload, given.lps)
        print(report(f"{given.lps} apart (ceiling)", apart, alone))
        split = run_processes(workload, given.lps)
        print(report(f"{given.lps} LPs", split, alone))
        ceilings.append(split.events_per_s / apart.events_per_s)
        digests |= {alone.digest, split.digest}
    # Before the last line, which `make bench` reads.
    print(f"the lookahead allows {balance(workload, given.lps):.2f} of the ceiling")
    print(f"{given.lps} LPs / ceiling: {median(ceilings):.2f}")
    return int(len(digests) > 1)


if __name__ == "__main__":
    raise SystemExit(main())
