"""Rules for transfers from other SIPs: their SIPs, nodes and addresses exist in this run.

The decoder of the wire calls these rules for the header of every transfer, so a transfer that
breaks one is the fault of the LP which sent it, and never reaches the chip.
"""

from runtime.model.addresses import AddressMap
from runtime.model.graph import ChipGraph
from runtime.wire.frames import Message
from sip_node.chip.context import ChipSpec
from sip_node.chip.fabric.packet import Kind
from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.ports.run_block import RunBlock, run_of

_TO_MEMORY = frozenset({Kind.WRITE, Kind.READ, Kind.IPCQ_DATA})
"""Kinds which access a memory; the others are replies and credits."""
_RECEIVERS = ("pe", "host")
"""Kinds of nodes which receive replies and credits: they issue the requests."""
_SENDERS = (*_RECEIVERS, "hbm_ctrl", "sram")


class PacketRules:
    """The rules of one run; all SIPs have the same nodes."""

    def __init__(self, spec: ChipSpec) -> None:
        self._sips = spec.topology.sips
        self._io_noc = spec.graph.io_noc
        self._has_credits = spec.layers is not None
        self._memories = _memories(spec)
        nodes = spec.graph.nodes
        self._senders = frozenset(node.index for node in nodes if node.kind in _SENDERS)
        self._receivers = frozenset(node.index for node in nodes if node.kind in _RECEIVERS)

    def fault(self, message: Message) -> str:
        """The first field that breaks a rule, and the rule; empty for packets that may enter.

        A run without a header is not the first of its transfer, whose header has been checked.
        """
        try:
            run = run_of(message)
        except ValueError as error:
            return str(error)
        return self._header_fault(run) if run.begins else ""

    def _header_fault(self, run: RunBlock) -> str:
        sip = max(run.source_sip, run.sip)
        if run.flow is not None:
            sip = max(sip, run.flow[0], run.flow[1])
        if sip >= self._sips:
            return f"SIP {sip} in a run with {self._sips} SIPs"
        if run.kind == Kind.LINK_CREDIT:
            return self._credit_fault(run)
        return self._node_fault(run)

    def _node_fault(self, run: RunBlock) -> str:
        if run.source_node not in self._senders:
            return f"field source_node: node {run.source_node} sends nothing to other SIPs"
        # An access outside of a memory would fail inside the memory, on the receiver.
        if run.kind in _TO_MEMORY:
            return self._access_fault(run)
        if run.node not in self._receivers:
            return f"field node: node {run.node} receives no {run.kind.name}"
        return ""

    def _credit_fault(self, run: RunBlock) -> str:
        if not self._has_credits:
            return "field kind: LINK_CREDIT in a run without noc.flow_control credits"
        for field, node in (("source_node", run.source_node), ("node", run.node)):
            if node != self._io_noc:
                return f"field {field}: node {node} is not the IO NoC, where links have credits"
        return ""

    def _access_fault(self, run: RunBlock) -> str:
        memory = self._memories.get(run.node)
        if memory is None:
            return f"field node: {run.node} is no memory"
        base, sip_bytes, nbytes = memory
        offset = run.address - base - run.sip * sip_bytes
        if not 0 <= offset <= nbytes - _extent(run.total, run.rows):
            return f"field address: {run.address:#x} is not in the memory of node {run.node}"
        return ""


def _extent(nbytes: int, rows: StridedBlock | None) -> int:
    """Bytes from the address of a transfer to the last byte of memory which it accesses."""
    if rows is None or not nbytes:
        return nbytes
    row, column = divmod(nbytes - 1, rows.row_bytes)
    plane = 0
    if rows.plane_rows:
        plane, row = divmod(row, rows.plane_rows)
        # All rows of a plane belong to the block, so a plane that is reached may count as a whole.
        row = rows.plane_rows - 1 if plane else row
    # Inside one row the access ends at its last byte; over several rows it may end before it.
    in_row = column + 1 if row == plane == 0 else rows.row_bytes
    return plane * rows.plane_pitch + row * rows.pitch + in_row


def _memories(spec: ChipSpec) -> dict[int, tuple[int, int, int]]:
    """Node of a memory -> (first address in SIP 0, address bytes of a SIP, its bytes)."""
    graph: ChipGraph = spec.graph
    addresses: AddressMap = spec.addresses
    topology = spec.topology
    # The address of a SIP is its number times a power of two; one SIP has no second to measure it.
    sip_bytes = (
        addresses.hbm_addr(1, 0, 0) - addresses.hbm_addr(0, 0, 0) if topology.sips > 1 else 0
    )
    memories: dict[int, tuple[int, int, int]] = {}
    for cube in range(topology.cubes):
        sram = addresses.cube_sram_addr(0, cube, 0)
        memories[graph.sram(cube)] = (sram, sip_bytes, topology.sram_bytes)
        for pe in range(topology.pes_per_cube):
            hbm, tcm = addresses.pe_hbm_addr(0, cube, pe, 0), addresses.pe_tcm_addr(0, cube, pe, 0)
            memories[graph.hbm(cube, pe)] = (hbm, sip_bytes, topology.hbm_slice_bytes)
            memories[graph.pe(cube, pe)] = (tcm, sip_bytes, topology.tcm_bytes)
    return memories
