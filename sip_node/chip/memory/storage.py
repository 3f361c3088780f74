"""The memories that are fabric nodes of their own: HBM slices and SRAM."""

from runtime.core.simtime import ps_from_ns
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.memory.hbm import PseudoChannels
from sip_node.chip.memory.memory import Memory
from sip_node.chip.memory.memory_port import MemoryPort


class HbmController:
    """One HBM slice behind its controller."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        where = chip.graph.nodes[node]
        self.banks = PseudoChannels(where.name, chip.topology)
        memory = Memory(f"{where.name}.hbm", chip.topology.hbm_slice_bytes, data=chip.data)
        base = chip.addresses.pe_hbm_addr(chip.sip, where.cube, where.pe, 0)
        self.port = MemoryPort(chip, node, memory, base, self.banks.serve, self.banks.serve_rows)
        self.port.latency_ps = ps_from_ns(chip.topology.cube.hbm_ctrl.latency_ns)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Serve a packet."""
        self.port.accept(packet, tail_ps)


class Sram:
    """The SRAM of a cube. The link to its router is its bandwidth: an access takes no time."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        where = chip.graph.nodes[node]
        memory = Memory(where.name, chip.topology.sram_bytes, data=chip.data)
        base = chip.addresses.cube_sram_addr(chip.sip, where.cube, 0)
        self.port = MemoryPort(chip, node, memory, base, self._serve)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Serve a packet."""
        self.port.accept(packet, tail_ps)

    def _serve(
        self,
        _offset: int,
        _nbytes: int,
        head_ps: int,
        tail_ps: int,
        _writes: bool,  # noqa: FBT001 - the signature of a `Serve`
    ) -> tuple[int, int]:
        return head_ps, tail_ps
