"""The whole sweep: every shape in every staging, simulated in worker processes, with its progress."""

import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass

from benches.milestone_1h_gemm.point import Point, measure
from benches.milestone_1h_gemm.rows import VERSION, Sweep
from benches.milestone_1h_gemm.shapes import Shape, Staging
from benches.milestone_1h_gemm.theory import Hardware
from benches.studies.pool import completed
from benches.studies.progress import shown
from benches.validate.variant import Variant
from runtime.config_file import config_hash
from runtime.errors import UsageError
from runtime.hardware.topology import parse_topology
from runtime.simtime import format_ps


@dataclass(frozen=True)
class Plan:
    """What is to be simulated: on the topology file `source`, every point of `points`, the rows in their order."""

    source: str
    topology_hash: str
    hardware: Hardware
    points: tuple[Point, ...]


def plan_sweep(source: str, text: str, shapes: Iterable[Shape]) -> Plan:
    """Every shape in every staging, on one PE of one SIP of the topology file `source`, whose content is `text`.

    Raises `ConfigError` for a wrong file, `UsageError` where operands do not fit.
    """
    topology = parse_topology(text, source)
    hardware = Hardware.of(topology)
    one_sip = Variant.of(text).on_a_ring(1).text
    points = tuple(Point(one_sip, hardware, shape, staging) for shape in shapes for staging in Staging)
    for point in points:
        _check_scratch(point)
    return Plan(source, config_hash(topology), hardware, points)


def simulate_sweep(plan: Plan, procs: int, timeout_s: float) -> Sweep:
    """Simulate the plan in `procs` processes. The result does not depend on their number."""
    # The longest first, so that no process is left alone with one at the end.
    ordered = sorted(plan.points, key=lambda point: point.steps, reverse=True)
    with closing(completed(measure, ordered, procs, timeout_s)) as done:
        rows = dict(shown(done, len(ordered), sys.stderr, "products", lambda row: format_ps(row.kernel_ps)))
    return Sweep(VERSION, plan.source, plan.topology_hash, plan.hardware, tuple(rows[point] for point in plan.points))


def _check_scratch(point: Point) -> None:
    needed, there = point.staging.loaded_bytes(point.shape), point.hardware.kernel_scratch_bytes
    if needed > there:
        raise UsageError(
            f"--shapes: {point} loads {needed:,} bytes of operands, "
            f"but kernel scratch is {there:,} bytes (pe.tcm.kernel_scratch_mb of the topology file)"
        )
