"""The least times on which the promises of a SIP rest: of its ports and of its commands.

They follow from the routes alone, so all SIPs of a process share them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import add

from runtime.core.simtime import ps_from_ns
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from sip_node.chip.bounds.command_bounds import CommandTimes
from sip_node.chip.fabric.clocked.clocked_network import HopTiming
from sip_node.chip.fabric.fabric import link_server
from sip_node.chip.fabric.server import Server


@dataclass(frozen=True)
class SipPaths:
    """The paths of a SIP: its routes, the classes of its links, and whether routers are clocked."""

    graph: ChipGraph
    routes: ChipRoutes
    links: Mapping[str, type[Server]]
    clocked: bool

    def latencies(self) -> Callable[[int, int], int]:
        """The least time from one node to another."""
        timing = HopTiming(self.graph) if self.clocked else None

        def latency_ps(source: int, target: int) -> int:
            route = self.routes.route(source, target)
            return route.latency_ps if timing is None else timing.latency_ps(route.stages)

        return latency_ps


@dataclass(frozen=True)
class SendTimes:
    """`port_path_ps` is the least time from a PE, by (cube, pe), to the ports to other SIPs."""

    port_path_ps: Mapping[tuple[int, int], int]
    commands: CommandTimes


def send_times(paths: SipPaths) -> SendTimes:
    """The least times on these paths."""
    graph, latency_ps = paths.graph, paths.latencies()
    out_ps = {
        (cube, pe): latency_ps(graph.pe(cube, pe), graph.io_noc)
        for cube in range(graph.topology.cubes)
        if cube not in graph.down.cubes
        for pe in range(graph.topology.pes_per_cube)
    }
    return SendTimes(out_ps, _command_times(paths, out_ps))


def _command_times(paths: SipPaths, out_ps: Mapping[tuple[int, int], int]) -> CommandTimes:
    """The least times of commands: paths without contention, to the nearest PE and back."""
    graph, latency_ps = paths.graph, paths.latencies()
    down_ps, up_ps, message_ps = list[int](), list[int](), list[int]()
    for (cube, pe), to_port_ps in out_ps.items():
        # A launch reaches a PE through the M_CPU of its cube, and its first packet leaves by the
        # IO NoC; the answer of the PE takes the same way back.
        m_cpu, node = graph.m_cpu(cube), graph.pe(cube, pe)
        down_ps.append(latency_ps(graph.io_cpu, m_cpu) + latency_ps(m_cpu, node))
        up_ps.append(latency_ps(node, m_cpu) + latency_ps(m_cpu, graph.io_cpu))
        message_ps.append(down_ps[-1] + to_port_ps)
    # A kernel starts at its stamp, which is the margin behind the longest route: so the margin is
    # part of every bound of a launch, although no packet waits for it.
    io_chiplet, host = graph.topology_of(graph.io_cpu).sip.io_chiplet, graph.topology_of(graph.host)
    margin_ps = ps_from_ns(io_chiplet.io_cpu.launch_margin_ns)
    order_ps = min(map(add, down_ps, up_ps))
    return CommandTimes(
        submit_ps=ps_from_ns(host.host.launch_overhead_ns),
        down_ps=latency_ps(graph.host, graph.io_cpu),
        up_ps=latency_ps(graph.io_cpu, graph.host),
        message_ps=margin_ps + min(message_ps),
        launch_ps=margin_ps + order_ps,
        ended_ps=min(up_ps),
        order_ps=order_ps,
        byte_ps=_host_byte_ps(paths),
    )


def _host_byte_ps(paths: SipPaths) -> Fraction:
    """The time of a byte on the narrowest link between host and IO_CPU, in the faster direction.

    0 where `impl:` replaces a class of links: another class need not serve bytes one by one.
    """
    graph, links = paths.graph, paths.links
    if any(serve is not Server for serve in links.values()):
        return Fraction(0)

    def slowest_ps(source: int, target: int) -> Fraction:
        stages = paths.routes.route(source, target).stages
        servers = (link_server(graph, graph.links[stage.link], links) for stage in stages)
        return max(server.byte_ps for server in servers)

    # One number for both directions: the smaller one bounds writes and reads.
    return min(slowest_ps(graph.host, graph.io_cpu), slowest_ps(graph.io_cpu, graph.host))
