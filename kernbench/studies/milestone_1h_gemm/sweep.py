"""The whole sweep: every shape in every staging, simulated in worker processes, with its progress."""

from collections.abc import Iterable

from kernbench.studies.milestone_1h_gemm.point import Point, measure
from kernbench.studies.milestone_1h_gemm.rows import VERSION, Sweep
from kernbench.studies.milestone_1h_gemm.shapes import Shape, Staging
from kernbench.studies.milestone_1h_gemm.theory import Hardware
from kernbench.studies.sweep import Plan, rows_of
from kernbench.theory.topology_file import TopologyFile
from runtime.core.config_file import config_hash
from runtime.core.errors import UsageError
from runtime.core.simtime import format_ps
from runtime.model.topology import parse_topology


def plan_sweep(source: str, text: str, shapes: Iterable[Shape]) -> Plan[Point]:
    """Every shape in every staging, on one PE of one SIP of the topology file `source`, whose content is `text`.

    Raises `ConfigError` for a wrong file, `UsageError` where operands do not fit.
    """
    topology = parse_topology(text, source)
    hardware = Hardware.of(topology)
    one_sip = TopologyFile.of(text).on_a_ring(1).text
    points = tuple(
        Point(one_sip, hardware, shape, staging) for shape in shapes for staging in Staging
    )
    for point in points:
        _check_scratch(point)
    return Plan(source, config_hash(topology), points)


def simulate_sweep(plan: Plan[Point], procs: int, timeout_s: float) -> Sweep:
    """Simulate the plan in `procs` processes. The result does not depend on their number."""
    rows = rows_of(
        plan,
        measure,
        procs,
        timeout_s,
        noun="products",
        outcome=lambda row: format_ps(row.kernel_ps),
    )
    return Sweep(VERSION, plan.source, plan.topology_hash, plan.points[0].hardware, rows)


def _check_scratch(point: Point) -> None:
    needed, there = point.staging.loaded_bytes(point.shape), point.hardware.kernel_scratch_bytes
    if needed > there:
        raise UsageError(
            f"--shapes: {point} loads {needed:,} bytes of operands, "
            f"but kernel scratch is {there:,} bytes (pe.tcm.kernel_scratch_mb of the topology file)"
        )
