"""A SIP: its components on one fabric, its boundary to other SIPs, its op log."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from msgspec import structs

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import InvariantError
from runtime.model.addresses import AddressMap
from runtime.model.graph import ChipGraph
from runtime.model.parts.overrides import UNIFORM, SipParts, parts_of
from runtime.model.routing import ChipRoutes
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import Topology
from runtime.model.virtual_layers import VirtualLayers
from runtime.wire.reports import BlockedPe, StalledBuffer
from sip_node.chip.bounds.command_bounds import CommandBounds
from sip_node.chip.bounds.send_bounds import SendBounds
from sip_node.chip.bounds.send_times import SipPaths, send_times
from sip_node.chip.context import ChipContext, ChipSpec, Flows
from sip_node.chip.fabric.clocked.credited_fabric import CreditedFabric
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.fabric.packet import EndpointLike, Packet
from sip_node.chip.fast_forward import FastForward
from sip_node.chip.host.host import Host
from sip_node.chip.kernel import StartKernel, no_kernels
from sip_node.chip.launch_keys import LaunchKeys, NoLaunchKeys
from sip_node.chip.launches.launch_templates import launch_templates
from sip_node.chip.mapping.memory_map import MemoryMap
from sip_node.chip.memory.memory import Memory
from sip_node.chip.memory.storage import BackPressure, HbmController, Sram
from sip_node.chip.pe.pe import Pe
from sip_node.chip.ports.credited_ports import CreditedPorts
from sip_node.chip.ports.ucie_ports import UciePorts
from sip_node.chip.records.link_loads import LinkLoads
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.registry import Unreached, components, is_late
from sip_node.chip.store_order import StoreOrders
from sip_node.pdes.engine import Engine


def chip_spec(
    topology: Topology,
    *,
    data: bool,
    remote_dma: bool = False,
    start_kernel: StartKernel = no_kernels,
    launch_keys: LaunchKeys | None = None,
) -> ChipSpec:
    """The spec of all SIPs of a process: graph, routes and addresses are computed once.

    It is that of a SIP without `overrides`; `SpecsOfSips` has those of the others.
    """
    # All SIPs have the same nodes.
    graph, sips = ChipGraph(structs.replace(topology, overrides={})), SipFabric(topology)
    routes, addresses = ChipRoutes(graph), AddressMap(topology)
    classes, credits_given = components(topology), topology.noc.flow_control == "credits"
    return ChipSpec(
        topology=topology,
        graph=graph,
        routes=routes,
        addresses=addresses,
        memory_map=MemoryMap(addresses, graph),
        layers=VirtualLayers(graph, routes, sips) if credits_given else None,
        sips=sips,
        components=classes,
        send_times=send_times(SipPaths(graph, routes, classes.links, credits_given)),
        data=data,
        remote_dma=remote_dma,
        start_kernel=start_kernel,
        launch_keys=launch_keys or NoLaunchKeys(),
    )


class SpecsOfSips:
    """The spec of each SIP of a process; SIPs with equal parts share one."""

    def __init__(self, spec: ChipSpec) -> None:
        self._spec = spec
        self._own: list[tuple[SipParts, ChipSpec]] = [(UNIFORM, spec)]

    def of(self, sip: int) -> ChipSpec:
        """The spec of a SIP."""
        parts = parts_of(self._spec.topology, sip)
        for each, spec in self._own:
            if each == parts:
                return spec
        self._own.append((parts, self._of_parts(sip)))
        return self._own[-1][1]

    def _of_parts(self, sip: int) -> ChipSpec:
        spec, graph = self._spec, ChipGraph(self._spec.topology, sip)
        routes, clocked = ChipRoutes(graph), spec.layers is not None
        return replace(
            spec,
            graph=graph,
            routes=routes,
            layers=VirtualLayers(graph, routes, spec.sips) if clocked else None,
            send_times=send_times(SipPaths(graph, routes, spec.components.links, clocked)),
        )


class Chip:
    """The components of SIP `sip`; `boundary` connects it with its neighbours."""

    def __init__(
        self,
        spec: ChipSpec,
        sip: int,
        engine: Engine,
        log: OpLog,
        forward: FastForward | None = None,
    ) -> None:
        self.sip, self.log, self._engine, self._graph = sip, log, engine, spec.graph
        times = spec.send_times
        self.send_bounds = SendBounds(
            times.port_path_ps,
            CommandBounds(times.commands),
            # A credit leaves in the event in which a packet has left its buffer, as an answer may.
            answers=spec.remote_dma or spec.layers is not None,
        )
        self.fabric = _fabric(spec, sip, engine, self.send_bounds)
        self.loads = None if log.recorder is None else LinkLoads(log.recorder)
        if self.loads is not None:
            self.fabric.record(self.loads)
        self.launches = launch_templates(spec.topology)
        chip = ChipContext(
            **vars(spec),
            sip=sip,
            engine=engine,
            fabric=self.fabric,
            log=log,
            send_bounds=self.send_bounds,
            flows=Flows(sip),
            store_orders=StoreOrders(),
            loads=self.loads,
            forward=forward,
            memory_ports={},
            launches=self.launches,
            reach=self._reach,
        )
        ports = UciePorts if spec.layers is None else CreditedPorts
        self.boundary = ports(chip)
        self.boundary.attach()
        self._port_bytes = spec.topology.port_buffer_bytes
        self._ports = chip.memory_ports
        self._made: dict[int, EndpointLike] = {}
        self._make = partial(_component, chip)
        endpoints = spec.components.endpoints
        for node in spec.graph.nodes:
            if node.kind not in endpoints:
                continue
            if isinstance(self.fabric, Fabric) and is_late(node, spec):
                self.fabric.attach(node.index, Unreached(self._reach, node.index))
                continue
            component = self._made[node.index] = self._make(node.index)
            self._attach(node.index, component)
            # A replacement of a host derives from the class of the model.
            if isinstance(component, Host):
                self.host = component
        if self.launches is not None:
            self.launches.connect(chip, self)

    def _attach(self, node: int, component: EndpointLike) -> None:
        """Deliver the packets for a node to its component."""
        fabric = self.fabric
        # A memory of another class (`impl:`) takes all that comes, as PEs do.
        if isinstance(fabric, CreditedFabric) and isinstance(component, HbmController | Sram):
            BackPressure(fabric, node, component, self._port_bytes)
        else:
            fabric.attach(node, _endpoint(component))

    def _reach(self, node: int) -> EndpointLike:
        """The component at `node`, which is made if it does not exist yet."""
        component = self._made.get(node)
        if component is None:
            assert isinstance(self.fabric, Fabric), "with credits all components exist"
            component = self._made[node] = self._make(node)
            self.fabric.replace(node, _endpoint(component))
        return component

    def pe(self, coordinates: PeCoordinates) -> Pe:
        """The PE at some coordinates."""
        pe = self._reach(self._graph.pe(coordinates.cube, coordinates.pe))
        assert isinstance(pe, Pe), "a replacement of a PE derives from the class of the model"
        return pe

    @property
    def components(self) -> list[tuple[int, EndpointLike]]:
        """The components that something has reached, with their nodes, in the order in which they
        were made.
        """
        return list(self._made.items())

    @property
    def pes(self) -> list[Pe]:
        """The PEs that something has reached, in the order of their nodes."""
        made = (self._made[node] for node in sorted(self._made))
        return [component for component in made if isinstance(component, Pe)]

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

    def oldest_wait(self) -> BlockedPe | None:
        """The kernel that has waited longest for a peer, the first of several."""
        # Only that one is described: a SIP has hundreds of PEs, and progress is reported often.
        waits = [wait for pe in self.pes if (wait := pe.cpu.oldest_wait()) is not None]
        return min(waits, key=lambda wait: wait[0])[1].blocked() if waits else None

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
        owner = f"sip {self.sip}"
        # Conservation: packets are neither lost nor duplicated.
        if self.fabric.sent != self.fabric.delivered:
            raise InvariantError(
                owner, f"{self.fabric.sent} packets were sent, {self.fabric.delivered} delivered"
            )
        # A FIFO server cannot serve for longer than time has passed.
        for server in (*self.fabric.busiest(), *self.boundary.ports):
            if server.busy_ps > self._engine.now_ps:
                raise InvariantError(
                    f"{owner}: {server.name}",
                    f"busy {server.busy_ps} ps of {self._engine.now_ps} ps",
                )
        self.boundary.check_at_rest()
        for pe in self.pes:
            pe.check_idle()
            pe.check_busy()

    def counters(self) -> dict[str, int]:
        """The counters of the components, by name with the unit."""
        servers, pes = list(self.fabric.busiest()), self.pes
        return {
            "packets": self.fabric.sent,
            "link_bytes": sum(server.nbytes for server in servers),
            "link_queued_ps": sum(server.queued_ps for server in servers),
            "busiest_link_ps": servers[0].busy_ps if servers else 0,
            "sip_messages_sent": self.boundary.sent,
            "sip_messages_received": self.boundary.received,
            "sip_bytes_sent": sum(server.nbytes for server in self.boundary.ports),
            "dma_bytes": sum(pe.dma.nbytes for pe in pes),
            "dma_busy_ps": sum(pe.dma.busy_ps for pe in pes),
            "fetch_busy_ps": sum(pe.fetch_store.fetch.server.busy_ps for pe in pes),
            "fetch_records": sum(pe.fetch_store.fetch.records for pe in pes),
            "store_busy_ps": sum(pe.fetch_store.store.server.busy_ps for pe in pes),
            "store_records": sum(pe.fetch_store.store.records for pe in pes),
            "math_busy_ps": sum(pe.math.busy_ps for pe in pes),
            "math_records": sum(pe.math.records for pe in pes),
            "gemm_busy_ps": sum(pe.gemm.busy_ps for pe in pes),
            "gemm_tiles": sum(pe.gemm.tiles for pe in pes),
            "gemm_macs": sum(pe.gemm.macs for pe in pes),
            "gemm_stall_dma_ps": sum(pe.gemm.stall_dma_ps for pe in pes),
            "gemm_stall_fetch_ps": sum(pe.gemm.stall_fetch_ps for pe in pes),
            "gemm_stall_store_ps": sum(pe.gemm.stall_store_ps for pe in pes),
        }


def _endpoint(component: EndpointLike) -> EndpointLike:
    """The part of a component that takes its packets; itself where its class overrides `accept`."""
    # Without the call of a method in between, packets reach a part in C from the fabric in C.
    for model in (Pe, HbmController, Sram):
        if isinstance(component, model) and type(component).accept is model.accept:
            return component.endpoint
    return component


def _component(chip: ChipContext, node: int) -> EndpointLike:
    return chip.components.endpoints[chip.graph.nodes[node].kind](chip.at(node), node)


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
