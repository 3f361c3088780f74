"""Programs that are run in this process, and checked."""

from collections.abc import Callable
from typing import Any

from kernbench.explain.check.findings import Findings, check_records
from kernbench.explain.records.collected import simulated_records
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

CUBE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
)
"""One cube with four PEs."""
TWO_CUBES = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=2,
    cube__pe_layout__corners=["NW", "SE"],
    cube__hbm_ctrl__latency_ns=3.0,
    noc__flow_control="credits",
)
"""Two cubes with four PEs each, whose routers have finite buffers."""


def checked(world: Simulation, *, is_strict: bool = False) -> Findings:
    """The findings of a run that was recorded."""
    sips = len(world.done.sips)
    records = simulated_records(sips, world.time_ps, world.rows, world.texts)
    return check_records(records, is_strict=is_strict)


def findings(
    program: Callable[[int], object], sips: int = 1, *, is_strict: bool = False, **options: Any
) -> Findings:
    """The findings of a program."""
    options.setdefault("topology", CUBE)
    return checked(simulate(program, sips, record=True, **options), is_strict=is_strict)
