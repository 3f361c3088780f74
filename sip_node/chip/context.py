"""The context in which components are built: the spec of the run, the engine, the fabric."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from runtime.model.addresses import AddressMap
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import Topology
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.bounds.send_bounds import SendBounds
from sip_node.chip.bounds.send_times import SendTimes
from sip_node.chip.fabric.clocked.credited_fabric import CreditedFabric
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.fabric.packet import EndpointLike
from sip_node.chip.fabric.server import Server
from sip_node.chip.fast_forward import FastForward
from sip_node.chip.kernel import StartKernel
from sip_node.chip.launch_keys import Launches, LaunchKeys
from sip_node.chip.mapping.memory_map import MemoryMap
from sip_node.chip.records.link_loads import LinkLoads
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.store_order import StoreOrders
from sip_node.pdes.engine import Engine

if TYPE_CHECKING:
    from sip_node.chip.memory.memory import Memory


class WatchedPort(Protocol):
    """The port of a memory, which announces slots that fill in a ring."""

    memory: "Memory"

    def contents(self) -> Iterator[tuple[int, bytes]]:
        """(physical address, bytes) of every page that is not zero."""
        ...

    def watch(self, ring_base: int, nbytes: int, pe_node: int) -> None:
        """Announce slots that fill in the ring at `ring_base` to the PE at `pe_node`."""
        ...


class Flows:
    """Numbers the transfers of a SIP to each other SIP; a trace draws them as arrows."""

    def __init__(self, sip: int) -> None:
        self._sip = sip
        self._sent: Counter[int] = Counter()

    def next(self, target: int) -> tuple[int, int, int]:
        """(source sip, target sip, sequence) of the next transfer to `target`."""
        self._sent[target] += 1
        return self._sip, target, self._sent[target]

    def counts(self) -> Counter[int]:
        """The number of transfers to each other SIP so far."""
        return self._sent.copy()

    def repeat(self, counts: Mapping[int, int]) -> None:
        """Count transfers of a launch that is not simulated."""
        self._sent.update(counts)


@dataclass(frozen=True)
class Components:
    """The classes of one run, by kind of node or engine.

    They are those that `impl:` in the topology file names, else those of the model.
    """

    endpoints: Mapping[str, Callable[["ChipContext", int], EndpointLike]]
    links: Mapping[str, type[Server]]
    engines: Mapping[str, Callable[..., Any]]


@dataclass(frozen=True)
class ChipSpec:
    """The parts that SIPs of a run share: all of them, or those with equal `overrides`.

    `layers` exist with flow control by credits only. `data` is whether memories keep bytes,
    `remote_dma` whether DMA engines may access other SIPs.
    """

    topology: Topology
    graph: ChipGraph
    routes: ChipRoutes
    addresses: AddressMap
    memory_map: MemoryMap
    layers: VirtualLayers | None
    sips: SipFabric
    components: Components
    send_times: SendTimes
    data: bool
    remote_dma: bool
    start_kernel: StartKernel
    launch_keys: LaunchKeys


@dataclass(frozen=True)
class ChipContext(ChipSpec):
    """The spec and what one SIP adds to it; `loads` in a run with records.

    A component's constructor takes it and the index of the component's node.
    """

    sip: int
    engine: Engine
    fabric: Fabric | CreditedFabric
    log: OpLog
    send_bounds: SendBounds
    flows: Flows
    store_orders: StoreOrders
    loads: LinkLoads | None
    forward: FastForward | None
    memory_ports: dict[int, WatchedPort]
    launches: Launches | None
    reach: Callable[[int], object]
    """Makes the component at a node, if it does not exist yet."""

    def at(self, node: int) -> "ChipContext":
        """The context of the component at a node, whose topology has its own values."""
        own = self.graph.topology_of(node)
        return self if own is self.graph.topology else replace(self, topology=own)

    def watch_ring(self, base: int, nbytes: int, pe_node: int) -> None:
        """Make the memory at `base` send arrivals to a PE, for slots in `nbytes` from there."""
        _, node = self.locate(base)
        self.reach(node)
        self.memory_ports[node].watch(base, nbytes, pe_node)

    def locate(self, address: int) -> tuple[int, int]:
        """(sip, node) of the memory that holds a physical address, as `MemoryMap.locate`."""
        return self.memory_map.locate(address)
