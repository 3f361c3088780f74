"""The cubes of a SIP by their distance from the IO chiplet, where the links to other SIPs are."""

from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import RouteEnd
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.model.topology import Topology


def nearest_cubes(topology: Topology) -> tuple[int, ...]:
    """All cubes, the nearest to the IO chiplet first; cubes at one distance by number.

    The distance is the time of an empty packet from the IO NoC to the nearest PE of the cube and
    back.
    """
    file = TopologyFile(topology.values())
    latency_ps, route, noc = RouteTimes(file).latency_ps, FloorPlan(file).route, RouteEnd("io_noc")

    def distance_ps(cube: int) -> int:
        pes = (RouteEnd("pe", 0, cube, pe) for pe in range(topology.pes_per_cube))
        return min(latency_ps(route(noc, pe)) + latency_ps(route(pe, noc)) for pe in pes)

    return tuple(sorted(range(topology.cubes), key=distance_ps))
