"""The memories that are fabric nodes of their own: HBM slices and SRAM.

With credits they accept and serve no more than they have room for:

    routers --> buffer of requests --> service --> queue of replies --> routers
                a packet has left it               too long: no further
                when its service begins            service begins

Without this back-pressure, the requests that a memory cannot serve yet, and the replies that it
cannot send yet, would wait outside of the network without a limit, and the senders would not
notice. A memory that waits goes on in the end: replies have virtual networks of their own, and PEs,
CPUs and the host accept them at any time.
"""

from collections.abc import Sequence

from runtime.core.simtime import ps_from_ns
from runtime.model.topology import Topology
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.clocked.credited_fabric import CreditedFabric
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.memory.access import Access
from sip_node.chip.memory.banks import BankedChannels
from sip_node.chip.memory.hbm import PseudoChannels
from sip_node.chip.memory.memory import Memory
from sip_node.chip.memory.memory_channels import MemoryChannels
from sip_node.chip.memory.memory_port import MemoryPort
from sip_node.chip.memory.transaction_queue import AccessQueue


class HbmController:
    """An HBM slice behind its controller."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        location, topology = chip.graph.nodes[node], chip.topology
        self.channels = channels = self.memory_channels(location.name, topology)
        if chip.loads is not None:
            chip.loads.watch_channels("memory", channels.channels)
        self.queue = AccessQueue(chip.engine, channels)
        memory = Memory(f"{location.name}.hbm", topology.hbm_slice_bytes, data=chip.data)
        base = chip.addresses.pe_hbm_addr(chip.sip, location.cube, location.pe, 0)
        self.port = MemoryPort(chip, node, memory, base, self.queue, _read_latency_ps(topology))
        self.endpoint = self.port.packets

    def memory_channels(self, name: str, topology: Topology) -> MemoryChannels:
        """The channels of the slice, by `hbm.model`; a class derived from this may have others."""
        model = BankedChannels if topology.hbm.model == "banks" else PseudoChannels
        return model(name, topology)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Serve a packet."""
        self.port.accept(packet, tail_ps)


class SramPorts:
    """A read port and a write port with the bandwidth of the link to the router.

    So they add no time to a packet that comes over the link or leaves over it, and a long read
    lends the port to others between its packets.
    """

    def __init__(self, name: str, bw_gbs: float) -> None:
        self.channels = [Server(f"{name}.{end}", bw_gbs) for end in ("read", "write")]

    def shares_of(self, access: Access) -> Sequence[int]:
        """All bytes on the port of their direction."""
        # Two ports, so reads and writes do not wait for each other: each direction of the link has
        # a rate of its own as well.
        return (0, access.nbytes) if access.writes else (access.nbytes, 0)

    def reserve(
        self,
        shares: Sequence[int],
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001 - the direction of an access, as in `Access`
    ) -> tuple[int, int, int]:
        """(begin of the first channel, begin of the last one, end); see `MemoryChannels`."""
        begin_ps, end_ps = self.channels[writes].reserve(head_ps, tail_ps, shares[writes])
        return begin_ps, begin_ps, end_ps


class Sram:
    """The SRAM of a cube. The link to its router is its bandwidth."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        location = chip.graph.nodes[node]
        self.ports = ports = SramPorts(location.name, chip.topology.cube.sram_to_router_bw_gbs)
        if chip.loads is not None:
            chip.loads.watch_channels("port", ports.channels)
        self.queue = AccessQueue(chip.engine, ports)
        memory = Memory(location.name, chip.topology.sram_bytes, data=chip.data)
        base = chip.addresses.cube_sram_addr(chip.sip, location.cube, 0)
        self.port = MemoryPort(chip, node, memory, base, self.queue)
        self.endpoint = self.port.packets

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Serve a packet."""
        self.port.accept(packet, tail_ps)


def _read_latency_ps(topology: Topology) -> int:
    """The time from the service of a read to its first byte."""
    if topology.hbm.model == "banks":
        # The activation (tRCD) is simulated by the banks; the column access and the controller
        # remain.
        banks = topology.hbm.banks
        return ps_from_ns(banks.t_cl_ns) + ps_from_ns(banks.controller_ns)
    return ps_from_ns(topology.cube.hbm_ctrl.latency_ns)


class BackPressure:
    """The coupling of the memory at `node` to the routers, with room for `limit_bytes` each way."""

    def __init__(
        self, fabric: CreditedFabric, node: int, memory: HbmController | Sram, limit_bytes: int
    ) -> None:
        self._fabric, self._node, self._queue = fabric, node, memory.queue
        self._limit_bytes = limit_bytes
        self._is_held = False
        memory.port.packets.on_service = self._begun
        fabric.attach(node, memory, limit_bytes, self._left)

    def _begun(self, packet: Packet) -> None:
        """The service of a packet has begun: the buffer has room again."""
        self._fabric.release(packet)
        # Replies queue when the routers are full. The memory then serves no more, its buffer fills,
        # and the requesters are held up by credits, as in hardware.
        if self._fabric.waiting_bytes(self._node) > self._limit_bytes:
            self._is_held = True
            self._queue.hold()

    def _left(self, _reply: Packet) -> None:
        if self._is_held and self._fabric.waiting_bytes(self._node) <= self._limit_bytes:
            self._is_held = False
            self._queue.resume()
