"""Closed forms for tests that write a route by hand: the formulas of `kernbench.oracle.theory`.

The routes with fixed lengths belong to the topology file that ships with kernbench.
"""

from kernbench.oracle.theory.bandwidths import channel_gbs
from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import (
    HOST_TO_IO,
    IO_TO_HOST,
    MESH_GBS,
    PE_GBS,
    ROUTER_NS,
    SRAM_GBS,
    TO_NEXT_SIP,
    TO_XBAR,
    XBAR_TO_HBM,
    XBAR_TO_PE,
    XBAR_TO_ROUTER,
    KeyedHop,
    Route,
    cube_to_io,
    io_to_cube,
    through_switch,
    to_next_cube,
)
from kernbench.oracle.theory.servers import packets, transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile

PITCH_MM = "2"
"""Pitch of the routers, and length of the wire between a router and a UCIe port."""

# In the file that ships, PEs and SRAM are beside their routers: wires without length.
PE_TO_ROUTER: Route = (KeyedHop("0", ROUTER_NS, PE_GBS),)
ROUTER_TO_PE: Route = (KeyedHop("0", "0", PE_GBS),)
ROUTER_TO_SRAM: Route = (KeyedHop("0", "cube.sram.overhead_ns", SRAM_GBS),)
SRAM_TO_ROUTER: Route = (KeyedHop("0", ROUTER_NS, SRAM_GBS),)
TO_NEXT_CUBE = to_next_cube(PITCH_MM, PITCH_MM)
CUBE_TO_IO, IO_TO_CUBE = cube_to_io(PITCH_MM), io_to_cube(PITCH_MM)


def mesh(hops: int) -> Route:
    """`hops` hops from router to neighbouring router."""
    return (KeyedHop(PITCH_MM, ROUTER_NS, MESH_GBS),) * hops


class HandWrittenRoutes(RouteTimes):
    """The times of routes that a test writes down."""

    def bulk_ps(self, route: Route, nbytes: int) -> int:
        """Data from or to a memory until the last byte has arrived, through no port of a TCM.

        On a route that ends or starts in an HBM slice, the pseudo channels are the last or the
        first server, and data that leave a slice wait for its latency first.
        """
        memory, hops = self.slice(), self.hops(route)
        if route[-1:] == XBAR_TO_HBM:
            return self.data(hops, nbytes, sink=memory).total_ps
        if route[:1] == TO_XBAR:
            return self.data((self.first_byte(), *hops), nbytes, memory).total_ps
        return self.data(hops, nbytes).total_ps


def route_times(text: str) -> HandWrittenRoutes:
    """The closed forms on the topology file `text`."""
    return HandWrittenRoutes(TopologyFile.of(text))


def ring_write_to_hbm_ps(times: RouteTimes, route: Route, nbytes: int, packet_bytes: int) -> int:
    """Time from the DMA channel to the last byte in a receive ring in HBM whose packets are bursts.

    Packet k is on pseudo channel k modulo their number. A channel serves one burst at a time. The
    bursts of a channel arrive one round of channels apart; where a burst takes longer than a round,
    they queue.
    """
    file, burst_gbs = times.file, channel_gbs(times.file)
    assert packet_bytes == file["hbm.burst_bytes"]
    interval_ps = transfer_ps(packet_bytes, times.narrowest_gbs(route))
    burst_ps, channels = transfer_ps(packet_bytes, burst_gbs), file["hbm.num_pcs"]
    ends_ps: list[int] = []
    for index, size in enumerate(packets(nbytes, packet_bytes)):
        rounds, channel = divmod(index, channels)
        start_ps = channel * interval_ps + rounds * max(channels * interval_ps, burst_ps)
        ends_ps.append(start_ps + transfer_ps(size, burst_gbs))
    return times.commands.write_start_ps + times.latency_ps(route) + max(ends_ps)


__all__ = [
    "CUBE_TO_IO",
    "HOST_TO_IO",
    "IO_TO_CUBE",
    "IO_TO_HOST",
    "PE_TO_ROUTER",
    "ROUTER_TO_PE",
    "ROUTER_TO_SRAM",
    "SRAM_TO_ROUTER",
    "TO_NEXT_CUBE",
    "TO_NEXT_SIP",
    "TO_XBAR",
    "XBAR_TO_HBM",
    "XBAR_TO_PE",
    "XBAR_TO_ROUTER",
    "Route",
    "RouteTimes",
    "mesh",
    "ring_write_to_hbm_ps",
    "route_times",
    "through_switch",
]
