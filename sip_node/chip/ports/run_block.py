"""Runs of packets as blocks of words: the body of a message between LPs.

`packet_blocks.py` defines the block, and the structs of the wire what is valid in one. The version
in C packs and opens a block without an object for each number.
"""

from runtime.wire import packet_blocks
from runtime.wire.frames import Message
from runtime.wire.packets import (
    MAX_RUN_PACKETS,
    PacketKind,
    PacketRun,
    TransferFlow,
    TransferHeader,
    TransferRows,
)
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.mapping.strided_block import StridedBlock


class RunBlock:
    """A run that keeps all rules of the wire: consecutive packets of one transfer.

    The fields of a transfer are there where the run `begins` it.
    """

    __slots__ = (
        "_run",
        "address",
        "begins",
        "call",
        "element",
        "ends",
        "flow",
        "kind",
        "node",
        "number",
        "packets",
        "rows",
        "sent_ps",
        "sip",
        "source_node",
        "source_sip",
        "tag",
        "total",
    )

    def __init__(self, run: PacketRun) -> None:
        self._run, self.number, self.ends = run, run.number, run.ends
        self.packets, self.begins = len(run.seqs), run.header is not None
        if run.header is not None:
            self._open(run.header)

    def head_ps(self, index: int) -> int:
        """The arrival of the head of a packet."""
        return self._run.heads_ps[index]

    def tail_ps(self, index: int) -> int:
        """The arrival of the tail of a packet."""
        return self._run.heads_ps[index] + self._run.tails_ps[index]

    def seq(self, index: int) -> int:
        """The number of a packet from its source to its target."""
        return self._run.seqs[index]

    def begin(self, index: int) -> int:
        """The offset of its first byte in the block of its transfer."""
        return self._run.begins[index]

    def size(self, index: int) -> int:
        """The bytes that it occupies on a link."""
        return self._run.sizes[index]

    def _open(self, header: TransferHeader) -> None:
        flow, rows = header.flow, header.rows
        self.kind = Kind(header.kind)
        self.source_sip, self.source_node = header.source_sip, header.source_node
        self.sip, self.node, self.address = header.sip, header.node, header.address
        self.tag, self.total, self.sent_ps = header.tag, header.total, header.sent_ps
        self.flow = None if flow is None else (flow.source_sip, flow.target_sip, flow.number)
        self.rows = None
        if rows is not None:
            self.rows = StridedBlock(rows.row_bytes, rows.pitch, rows.plane_rows, rows.plane_pitch)
        self.element, self.call = header.element, header.call


def run_of(message: Message) -> RunBlock:
    """The run of a message; raises `ValueError`, which names the field that breaks a rule."""
    return RunBlock(packet_blocks.run_of(message))


class OpenRun:
    """The packets of a transfer that wait for a message: run `number` of a link."""

    __slots__ = (
        "_begins",
        "_heads_ps",
        "_is_first",
        "_number",
        "_seqs",
        "_sizes",
        "_tails_ps",
        "ends",
        "transfer",
    )

    def __init__(self, transfer: FabricTransfer, number: int, *, is_first: bool) -> None:
        self.transfer, self.ends = transfer, False
        self._number, self._is_first = number, is_first
        self._heads_ps: list[int] = []
        self._tails_ps: list[int] = []
        self._seqs: list[int] = []
        self._begins: list[int] = []
        self._sizes: list[int] = []

    def is_full(self) -> bool:
        """Whether no more packet fits into the run."""
        return len(self._seqs) == MAX_RUN_PACKETS

    @property
    def time_ps(self) -> int:
        """The arrival of the head of the first packet."""
        return self._heads_ps[0]

    @property
    def seq(self) -> int:
        """The number of the first packet."""
        return self._seqs[0]

    def append(self, head_ps: int, tail_ps: int, seq: int, packet: Packet) -> None:
        """Add a packet that arrives from `head_ps` to `tail_ps`."""
        self._heads_ps.append(head_ps)
        self._tails_ps.append(tail_ps - head_ps)
        self._seqs.append(seq)
        self._begins.append(packet.begin)
        self._sizes.append(packet.size)
        if packet.last:
            self.ends = True

    def packed(self) -> bytes:
        """The block of the run."""
        return packet_blocks.pack(
            PacketRun(
                number=self._number,
                header=_header_of(self.transfer) if self._is_first else None,
                ends=self.ends,
                heads_ps=tuple(self._heads_ps),
                tails_ps=tuple(self._tails_ps),
                seqs=tuple(self._seqs),
                begins=tuple(self._begins),
                sizes=tuple(self._sizes),
            )
        )


def _header_of(transfer: FabricTransfer) -> TransferHeader:
    """The header of a transfer on the wire, of a kind that crosses between SIPs."""
    flow, rows = transfer.flow, transfer.rows
    return TransferHeader(
        kind=PacketKind(transfer.kind),
        source_sip=transfer.source_sip,
        source_node=transfer.source_node,
        sip=transfer.sip,
        node=transfer.node,
        address=transfer.address,
        tag=transfer.tag,
        total=transfer.total,
        sent_ps=transfer.sent_ps,
        flow=None if flow is None else TransferFlow(*flow),
        rows=None if rows is None else TransferRows(*rows),
        element=transfer.element,
        call=transfer.call,
    )
