"""The whole sweep: every point simulated in worker processes, with its progress."""

import sys
from contextlib import closing
from dataclasses import dataclass

from benches.ccl_algorithms.point import measure
from benches.ccl_algorithms.points import Point, plan_points
from benches.ccl_algorithms.rows import VERSION, Sweep
from benches.studies.pool import completed
from benches.studies.progress import shown
from runtime.config_file import config_hash
from runtime.hardware.topology import parse_topology
from runtime.simtime import format_ps


@dataclass(frozen=True)
class Plan:
    """What is to be simulated: on the topology file `source`, every point of `points`, the rows in their order."""

    source: str
    topology_hash: str
    points: tuple[Point, ...]


def plan_sweep(source: str, text: str, ccl: str, max_bytes: int) -> Plan:
    """Everything on the topology file `source`, whose content is `text`; raises `ConfigError` for a wrong file."""
    return Plan(source, config_hash(parse_topology(text, source)), plan_points(text, ccl, max_bytes))


def simulate_sweep(plan: Plan, procs: int, timeout_s: float) -> Sweep:
    """Simulate the plan in `procs` processes. The result does not depend on their number."""
    # The longest first, so that no process is left alone with one at the end.
    ordered = sorted(plan.points, key=lambda point: point.cost, reverse=True)
    with closing(completed(measure, ordered, procs, timeout_s)) as done:
        rows = dict(shown(done, len(ordered), sys.stderr, "all-reduces", lambda row: format_ps(row.time_ps)))
    return Sweep(VERSION, plan.source, plan.topology_hash, tuple(rows[point] for point in plan.points))
