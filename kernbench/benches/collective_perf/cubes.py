"""The cubes of a SIP by their distance from the IO chiplet, where the links to other SIPs are."""

from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.topology import Topology


def nearest_cubes(topology: Topology) -> tuple[int, ...]:
    """All cubes, the nearest to the IO chiplet first; cubes at one distance by number.

    The distance is the time of an empty packet from the IO NoC to the nearest PE of the cube and
    back.
    """
    graph = ChipGraph(topology)
    routes = ChipRoutes(graph)

    def distance_ps(cube: int) -> int:
        pes = (graph.pe(cube, pe) for pe in range(topology.pes_per_cube))
        return min(
            routes.route(graph.io_noc, pe).latency_ps + routes.route(pe, graph.io_noc).latency_ps
            for pe in pes
        )

    return tuple(sorted(range(topology.cubes), key=distance_ps))
