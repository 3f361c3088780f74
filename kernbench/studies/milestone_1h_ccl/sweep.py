"""The whole sweep: every point simulated in worker processes, with its progress."""

from kernbench.studies.milestone_1h_ccl.networks import NETWORKS
from kernbench.studies.milestone_1h_ccl.point import measure
from kernbench.studies.milestone_1h_ccl.points import Point, plan_points
from kernbench.studies.milestone_1h_ccl.rows import VERSION, Sweep
from kernbench.studies.sweep import Plan, rows_of
from runtime.core.config_file import config_hash
from runtime.core.simtime import format_ps
from runtime.model.topology import parse_topology


def plan_sweep(source: str, text: str, ccl: str, max_bytes: int) -> Plan[Point]:
    """Everything on the topology file `source`, whose content is `text`; raises `ConfigError` for a wrong file."""
    return Plan(
        source, config_hash(parse_topology(text, source)), plan_points(text, ccl, max_bytes)
    )


def simulate_sweep(plan: Plan[Point], procs: int, timeout_s: float) -> Sweep:
    """Simulate the plan in `procs` processes. The result does not depend on their number."""
    rows = rows_of(
        plan,
        measure,
        procs,
        timeout_s,
        noun="all-reduces",
        outcome=lambda row: format_ps(row.time_ps),
    )
    layouts = {point.network: point.theory.layout for point in plan.points if point.part == "size"}
    networks = tuple(network for network in NETWORKS if network in layouts)
    return Sweep(
        VERSION,
        plan.source,
        plan.topology_hash,
        networks,
        tuple(layouts[network] for network in networks),
        rows,
    )
