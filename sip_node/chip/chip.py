"""One SIP: its components on one fabric, its boundary to other SIPs, its op log."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from operator import add

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import InvariantError
from runtime.core.simtime import ps_from_ns
from runtime.model.addresses import AddressMap
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import Topology
from runtime.model.virtual_layers import VirtualLayers
from runtime.wire.reports import BlockedPe, StalledBuffer
from sip_node.chip.command_bounds import CommandBounds, CommandTimes
from sip_node.chip.context import ChipContext, ChipSpec, Flows
from sip_node.chip.credited_ports import CreditedPorts
from sip_node.chip.fabric.clocked_network import HopTiming
from sip_node.chip.fabric.credited_fabric import CreditedFabric
from sip_node.chip.fabric.fabric import Endpoint, Fabric, link_server
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.host.host import Host
from sip_node.chip.kernel import StartKernel, no_kernels
from sip_node.chip.memory.back_pressure import BackPressure
from sip_node.chip.memory.memory import Memory
from sip_node.chip.memory.storage import HbmController, Sram
from sip_node.chip.memory_map import MemoryMap
from sip_node.chip.op_log import OpLog
from sip_node.chip.pe.pe import Pe
from sip_node.chip.registry import LINKS, components
from sip_node.chip.send_bounds import SendBounds
from sip_node.chip.ucie_ports import UciePorts
from sip_node.pdes.engine import Engine


def chip_spec(
    topology: Topology,
    *,
    data: bool,
    remote_dma: bool = False,
    start_kernel: StartKernel = no_kernels,
) -> ChipSpec:
    """The spec of all SIPs of a process: graph, routes and addresses are computed once."""
    graph, sips = ChipGraph(topology), SipFabric(topology)
    routes, addresses = ChipRoutes(graph), AddressMap(topology)
    credits_given = topology.noc.flow_control == "credits"
    return ChipSpec(
        topology=topology,
        graph=graph,
        routes=routes,
        addresses=addresses,
        memory_map=MemoryMap(addresses, graph),
        layers=VirtualLayers(graph, routes, sips) if credits_given else None,
        sips=sips,
        components=components(topology),
        data=data,
        remote_dma=remote_dma,
        start_kernel=start_kernel,
    )


class Chip:
    """The components of SIP `sip`; `boundary` connects it with its neighbours."""

    def __init__(self, spec: ChipSpec, sip: int, engine: Engine, log: OpLog) -> None:
        self.sip, self.log, self._engine, self._graph = sip, log, engine, spec.graph
        self.send_bounds = _send_bounds(spec)
        self.fabric = _fabric(spec, sip, engine, self.send_bounds)
        chip = ChipContext(
            **vars(spec),
            sip=sip,
            engine=engine,
            fabric=self.fabric,
            log=log,
            send_bounds=self.send_bounds,
            flows=Flows(sip),
            memory_ports={},
        )
        ports = UciePorts if spec.layers is None else CreditedPorts
        self.boundary = ports(chip)
        self.boundary.attach()
        self._port_bytes = spec.topology.port_buffer_bytes
        self.pes: list[Pe] = []
        endpoints = spec.components.endpoints
        for node in spec.graph.nodes:
            if node.kind in endpoints:
                component = endpoints[node.kind](chip, node.index)
                self._attach(node.index, component)
                # A replacement of a PE or a host derives from the class of the model.
                if isinstance(component, Pe):
                    self.pes.append(component)
                if isinstance(component, Host):
                    self.host = component
        self._pe_at = {(pe.coordinates.cube, pe.coordinates.pe): pe for pe in self.pes}
        self._ports = chip.memory_ports

    def _attach(self, node: int, component: Endpoint) -> None:
        """Deliver the packets for a node to its component."""
        fabric = self.fabric
        # A memory of another class (`impl:`) takes all that comes, as PEs do.
        if isinstance(fabric, CreditedFabric) and isinstance(component, HbmController | Sram):
            BackPressure(fabric, node, component, self._port_bytes)
        else:
            fabric.attach(node, _endpoint(component))

    def pe(self, coordinates: PeCoordinates) -> Pe:
        """The PE at some coordinates."""
        return self._pe_at[coordinates.cube, coordinates.pe]

    @property
    def memories(self) -> Iterator[Memory]:
        """All memories of the SIP, in the order of their nodes."""
        return (self._ports[node].memory for node in sorted(self._ports))

    def contents(self) -> Iterator[tuple[int, bytes]]:
        """(physical address, bytes) of every page of its memories that is not all zero."""
        for node in sorted(self._ports):
            yield from self._ports[node].contents()

    def blocked(self) -> tuple[BlockedPe, ...]:
        """Every kernel that waits for a peer, in (cube, pe) order."""
        return tuple(blocked for pe in self.pes for blocked in pe.blocked())

    def stalled(self) -> tuple[StalledBuffer, ...]:
        """The packets that stand still at the end of a run, and the buffers that they wait for."""
        nodes = self._graph.nodes

        def named(packet: Packet) -> str:
            each = packet.transfer
            source, target = nodes[each.source_node].name, nodes[each.node].name
            return (
                f"{each.kind.name} of {packet.size:,} B from sip {each.source_sip} {source} "
                f"to sip {each.sip} {target}"
            )

        return tuple(
            StalledBuffer(buffer, named(packet), waits_for)
            for buffer, packet, waits_for in self.boundary.stalled()
        )

    def broken_law(self) -> str:
        """The first law of the model that does not hold at the end of a run, or nothing.

        Every packet sent was delivered, no link and no engine was busy longer than time has passed,
        no kernel runs, no matrix product is in flight, every credit has returned.
        """
        try:
            self._check_laws()
        except InvariantError as broken:
            return str(broken)
        return ""

    def _check_laws(self) -> None:
        where = f"sip {self.sip}"
        # Conservation: packets are neither lost nor duplicated.
        if self.fabric.sent != self.fabric.delivered:
            raise InvariantError(
                where, f"{self.fabric.sent} packets were sent, {self.fabric.delivered} delivered"
            )
        # A FIFO server cannot serve for longer than time has passed.
        for server in (*self.fabric.busiest(), *self.boundary.ports):
            if server.busy_ps > self._engine.now_ps:
                raise InvariantError(
                    f"{where}: {server.name}",
                    f"busy {server.busy_ps} ps of {self._engine.now_ps} ps",
                )
        self.boundary.check_at_rest()
        for pe in self.pes:
            pe.check_idle()
            pe.check_busy()

    def counters(self) -> dict[str, int]:
        """The counters of the components, by name with the unit."""
        servers = list(self.fabric.busiest())
        return {
            "packets": self.fabric.sent,
            "link_bytes": sum(server.nbytes for server in servers),
            "link_queued_ps": sum(server.queued_ps for server in servers),
            "busiest_link_ps": servers[0].busy_ps if servers else 0,
            "sip_messages_sent": self.boundary.sent,
            "sip_messages_received": self.boundary.received,
            "sip_bytes_sent": sum(server.nbytes for server in self.boundary.ports),
            "dma_bytes": sum(pe.dma.nbytes for pe in self.pes),
            "dma_busy_ps": sum(pe.dma.busy_ps for pe in self.pes),
            "fetch_busy_ps": sum(pe.fetch_store.fetch.server.busy_ps for pe in self.pes),
            "fetch_records": sum(pe.fetch_store.fetch.records for pe in self.pes),
            "store_busy_ps": sum(pe.fetch_store.store.server.busy_ps for pe in self.pes),
            "store_records": sum(pe.fetch_store.store.records for pe in self.pes),
            "math_busy_ps": sum(pe.math.busy_ps for pe in self.pes),
            "math_records": sum(pe.math.records for pe in self.pes),
            "gemm_busy_ps": sum(pe.gemm.busy_ps for pe in self.pes),
            "gemm_tiles": sum(pe.gemm.tiles for pe in self.pes),
            "gemm_macs": sum(pe.gemm.macs for pe in self.pes),
            "gemm_stall_dma_ps": sum(pe.gemm.stall_dma_ps for pe in self.pes),
            "gemm_stall_fetch_ps": sum(pe.gemm.stall_fetch_ps for pe in self.pes),
            "gemm_stall_store_ps": sum(pe.gemm.stall_store_ps for pe in self.pes),
        }


def _endpoint(component: Endpoint) -> Endpoint:
    """The part of a component that takes its packets; itself where its class overrides `accept`."""
    # Without the call of a method in between, packets reach a part in C from the fabric in C.
    for model in (Pe, HbmController, Sram):
        if isinstance(component, model) and type(component).accept is model.accept:
            return component.endpoint
    return component


def _fabric(
    spec: ChipSpec, sip: int, engine: Engine, send_bounds: SendBounds
) -> Fabric | CreditedFabric:
    """The fabric of a SIP, by `noc.flow_control`."""
    graph, routes, links = spec.graph, spec.routes, spec.components.links
    if spec.layers is not None:
        return CreditedFabric(
            engine, graph, routes, spec.layers, spec.sips, sip, send_bounds, links
        )
    return Fabric(engine, graph, routes, sip, send_bounds, links)


def _send_bounds(spec: ChipSpec) -> SendBounds:
    """The least times from the components of a SIP to its ports, from its routes."""
    graph = spec.graph
    latency_ps = _latencies(spec)
    out = {
        (cube, pe): latency_ps(graph.pe(cube, pe), graph.io_noc)
        for cube in range(spec.topology.cubes)
        for pe in range(spec.topology.pes_per_cube)
    }
    # A credit leaves in the event in which a packet has left its buffer, as an answer may.
    answers = spec.remote_dma or spec.layers is not None
    return SendBounds(out, CommandBounds(_command_times(spec, out)), answers=answers)


def _command_times(spec: ChipSpec, out_ps: Mapping[tuple[int, int], int]) -> CommandTimes:
    """The least times of commands: paths without contention, to the nearest PE and back."""
    graph, latency_ps, topology = spec.graph, _latencies(spec), spec.topology
    down_ps, up_ps, message_ps = list[int](), list[int](), list[int]()
    for (cube, pe), to_port_ps in out_ps.items():
        # A launch reaches a PE through the M_CPU of its cube, and its first packet leaves by the
        # IO NoC; the answer of the PE takes the same way back.
        m_cpu, at = graph.m_cpu(cube), graph.pe(cube, pe)
        down_ps.append(latency_ps(graph.io_cpu, m_cpu) + latency_ps(m_cpu, at))
        up_ps.append(latency_ps(at, m_cpu) + latency_ps(m_cpu, graph.io_cpu))
        message_ps.append(down_ps[-1] + to_port_ps)
    margin_ps = ps_from_ns(topology.sip.io_chiplet.io_cpu.launch_margin_ns)
    order_ps = min(map(add, down_ps, up_ps))
    return CommandTimes(
        submit_ps=ps_from_ns(topology.host.launch_overhead_ns),
        down_ps=latency_ps(graph.host, graph.io_cpu),
        up_ps=latency_ps(graph.io_cpu, graph.host),
        message_ps=margin_ps + min(message_ps),
        launch_ps=margin_ps + order_ps,
        ended_ps=min(up_ps),
        order_ps=order_ps,
        byte_ps=_host_byte_ps(spec),
    )


def _latencies(spec: ChipSpec) -> Callable[[int, int], int]:
    timing = None if spec.layers is None else HopTiming(spec.graph)

    def latency_ps(source: int, target: int) -> int:
        route = spec.routes.route(source, target)
        return route.latency_ps if timing is None else timing.latency_ps(route.stages)

    return latency_ps


def _host_byte_ps(spec: ChipSpec) -> Fraction:
    """The time of a byte on the narrowest link between host and IO_CPU, in the faster direction.

    0 where `impl:` replaces a class of links: another class need not serve bytes one by one.
    """
    graph, links = spec.graph, spec.components.links
    if any(serve is not LINKS[kind] for kind, serve in links.items()):
        return Fraction(0)

    def slowest_ps(source: int, target: int) -> Fraction:
        stages = spec.routes.route(source, target).stages
        servers = (link_server(graph, graph.links[stage.link], links) for stage in stages)
        return max(server.byte_ps for server in servers)

    return min(slowest_ps(graph.host, graph.io_cpu), slowest_ps(graph.io_cpu, graph.host))
