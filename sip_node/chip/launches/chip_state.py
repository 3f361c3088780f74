"""The state of an idle chip: its servers, the channels of its slices of HBM, and its memories."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import PhysAddrError
from sip_node.chip.context import ChipContext
from sip_node.chip.host.host import Host
from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.launches.launch_values import MemoryPlace
from sip_node.chip.memory.storage import HbmController, Sram
from sip_node.chip.pe.pe import Pe

if TYPE_CHECKING:
    from sip_node.chip.launches.server_states import ServerStates


class IdleChip(Protocol):
    """The parts of a chip that its launches need."""

    @property
    def host(self) -> Host:
        """The host of the chip."""
        ...

    @property
    def boundary(self) -> Any:
        """The ports to other SIPs, with counts of the messages `sent` and `received`."""
        ...

    @property
    def components(self) -> Sequence[tuple[int, object]]:
        """The components that exist, with their nodes, in the order in which they were made."""
        ...

    def pe(self, coordinates: PeCoordinates) -> Pe:
        """The PE at some coordinates."""
        ...


class SliceOfHbm(NamedTuple):
    """A slice of HBM: its controller, the states of its channels, and their loads over time, in a
    run with records.
    """

    controller: HbmController
    states: "ServerStates"
    bins: Sequence[Any]


class Snapshot(NamedTuple):
    """The states of all servers; those of the channels of HBM by slice."""

    servers: Any
    channels: dict[int, Any]


class ChipState:
    """The servers of the components of `chip` that exist.

    Channels of HBM are apart: which of them serves a block depends on its address.
    """

    def __init__(self, context: ChipContext, chip: IdleChip) -> None:
        # In C only, where launches are repeated.
        from sip_node.chip.launches.server_states import ServerStates

        self._new_states = ServerStates
        self.context, self.chip = context, chip
        self.engine: Any = context.engine
        self.fabric: Any = context.fabric
        self.log: Any = context.log
        self.servers, self._components = ServerStates(), 0
        for server in self.fabric.servers:
            if server is not None:
                self.servers.add(server)
        for server in chip.boundary.servers:
            self.servers.add(server)
        self.slices: dict[int, SliceOfHbm] = {}
        self._places: dict[int, MemoryPlace] = {}

    def read(self) -> Snapshot:
        """The state now."""
        self._add_components()
        channels = {node: each.states.read() for node, each in self.slices.items()}
        return Snapshot(self.servers.read(), channels)

    def bins(self) -> list[Any]:
        """The loads of all servers over time; none in a run without records."""
        loads: Any = self.context.loads
        return [] if loads is None else [bins for _, _, bins in loads.watched]

    def place_of(self, address: int) -> MemoryPlace | None:
        """The memory of an address; None for registers. Raises `NotRepeated` for another SIP."""
        node = self._memory_of(address)
        if node is None:
            return None
        place = self._places.get(node)
        if place is None:
            port: Any = self.context.memory_ports[node]
            place = self._places[node] = MemoryPlace(
                port.memory, port.packets.base, self._is_local(node)
            )
        return place

    def is_external(self, address: int) -> bool:
        """Whether an address is in HBM or SRAM, also in one that nothing has reached yet."""
        node = self._memory_of(address)
        return node is not None and not self._is_local(node)

    def _memory_of(self, address: int) -> int | None:
        try:
            sip, node = self.context.locate(address)
        except PhysAddrError:
            return None
        if sip != self.context.sip:
            raise NotRepeated("a memory of another SIP")
        return node

    def _is_local(self, node: int) -> bool:
        return self.context.graph.nodes[node].kind == "pe"

    def locate(self, address: int) -> tuple[int, int]:
        """The SIP of an address, and the node of its memory there."""
        return self.context.locate(address)

    def _add_components(self) -> None:
        """Add the servers of components that were made since."""
        components = self.chip.components
        for node, component in components[self._components :]:
            match component:
                case Pe():
                    ports = component.fetch_store
                    for server in (component.tcm.server, ports.fetch.server, ports.store.server):
                        self.servers.add(server)
                case HbmController():
                    states, bins = self._new_states(), list[Any]()
                    states.add_channels(component.channels)
                    if self.context.loads is not None:
                        channels: Any = component.channels
                        bins = [channel.bins for channel in channels.channels]
                    self.slices[node] = SliceOfHbm(component, states, bins)
                case Sram():
                    for server in component.ports.channels:
                        self.servers.add(server)
                case _:
                    pass
        self._components = len(components)
