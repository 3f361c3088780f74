"""Packets in messages from other LPs: each message continues a transfer, or begins one.

The other end of the link is `packet_runs.py`. A link numbers its transfers, and a run of packets
has the number of its transfer; so a transfer is one object here as well, whose payload comes with
its last packet.
"""

from collections.abc import Iterator, Mapping
from operator import add
from typing import TYPE_CHECKING, NoReturn, Protocol

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.errors import ProtocolError
from runtime.wire.frames import Message
from runtime.wire.packet_blocks import run_of
from runtime.wire.packets import CARRIERS, PacketRun, TransferHeader
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.packet_runs import MANY_PACKETS
from sip_node.chip.strided_block import StridedBlock


class ReceivingEnd(Protocol):
    """Where packets of another LP enter a SIP."""

    def arrive_run(self, source: int, transfer: FabricTransfer, run: PacketRun) -> str:
        """The packets of a run come; returns the rule of the link that one of them breaks."""
        ...


class ReferencePartialTransfer:
    """A transfer of which some packets have come, and the bytes in them."""

    __slots__ = ("nbytes", "transfer")

    def __init__(self, transfer: FabricTransfer) -> None:
        self.transfer = transfer
        self.nbytes = 0


class ReferenceArrivingTransfers:
    """The transfers that other LPs send to the SIPs of this one, from first to last message.

    `lp_of` gives the LP of a SIP. What breaks a rule is a `ProtocolError` of the sending LP.
    """

    _partial = ReferencePartialTransfer

    def __init__(self, lp_of: Mapping[int, int]) -> None:
        self._lp_of = lp_of
        self._begun: dict[tuple[int, int, int], ReferencePartialTransfer] = {}
        self._next: dict[tuple[int, int], int] = {}

    def check_at_rest(self) -> None:
        """At the end of a run every transfer has ended."""
        for source, target, number in sorted(self._begun):
            begun = self._begun[source, target, number]
            raise ProtocolError(
                self._peer(source),
                f"{_name(source, target, number)} ({_described(begun.transfer)}) has no last "
                f"packet: {begun.nbytes:,} B have come",
            )

    def receive(self, message: Message, end: ReceivingEnd) -> None:
        """Give the packets of a message to the end of their link."""
        run = run_of(message)
        fault = end.arrive_run(message.source, self.transfer(message, run), run)
        if fault:
            raise ProtocolError(self._peer(message.source), fault)

    def transfer(self, message: Message, run: PacketRun) -> FabricTransfer:
        """The transfer that the run of a message belongs to; with its last packet, its payload."""
        source, target, number = key = message.source, message.target, run.number
        begun = self._begun.get(key)
        if run.header is not None:
            due = self._next.get((source, target), 0)
            if number != due:
                self._refuse(message, number, f"begins, the next to begin is number {due}")
            self._next[source, target] = due + 1
            begun = self._begun[key] = self._partial(transfer_of(run.header))
        elif begun is None:
            self._refuse(message, number, "continues, but has not begun or has ended")
        fault = _fault(begun, run, len(message.payload))
        if fault:
            self._refuse(message, number, fault)
        if run.ends:
            del self._begun[key]
            begun.transfer.payload = message.payload
        return begun.transfer

    def _refuse(self, message: Message, number: int, fault: str) -> NoReturn:
        name = _name(message.source, message.target, number)
        raise ProtocolError(self._peer(message.source), f"{name} {fault}")

    def _peer(self, source: int) -> str:
        return f"LP {self._lp_of[source]}"


def _fault(begun: ReferencePartialTransfer, run: PacketRun, payload_bytes: int) -> str:
    """The rule that the next run of a transfer breaks, or nothing; counts its bytes."""
    fault = _packet_fault(begun, run)
    total = begun.transfer.total
    if not fault and payload_bytes:
        carried = total if begun.transfer.kind in CARRIERS else 0
        if payload_bytes != carried:
            fault = f"has a payload of {payload_bytes:,} B"
    return fault and f"({_described(begun.transfer)}) {fault}"


def _packet_fault(begun: ReferencePartialTransfer, run: PacketRun) -> str:
    kind, total = begun.transfer.kind, begun.transfer.total
    begun.nbytes += sum(run.sizes)
    if kind in CARRIERS:
        if max(map(add, run.begins, run.sizes)) > total:
            return "has a packet beyond its end"
        if begun.nbytes > total or (run.ends and begun.nbytes < total):
            return f"has packets of {begun.nbytes:,} B"
    elif kind is Kind.READ and max(run.begins) >= total:
        return "has a packet beyond its end"
    elif kind not in MANY_PACKETS and not (run.ends and len(run.sizes) == 1):
        return "has more than one packet"
    return ""


def packets_of(transfer: FabricTransfer, run: PacketRun) -> Iterator[tuple[int, int, int, Packet]]:
    """(time of the head, number, time of the tail, packet) for every packet of a run."""
    to_come = len(run.seqs)
    for head_ps, seq, tail_ps, begin, size in zip(
        run.heads_ps, run.seqs, run.tails_ps, run.begins, run.sizes, strict=True
    ):
        to_come -= 1
        last = run.ends and not to_come
        yield head_ps, seq, head_ps + tail_ps, Packet(transfer, begin, size, last)


def _name(source: int, target: int, number: int) -> str:
    return f"transfer {number} from SIP {source} to SIP {target}"


def _described(transfer: FabricTransfer) -> str:
    return f"{transfer.kind.name} of {transfer.total:,} B"


def transfer_of(header: TransferHeader) -> FabricTransfer:
    """The transfer that a header describes, without its payload."""
    flow, rows = header.flow, header.rows
    return FabricTransfer(
        kind=Kind(header.kind),
        source_sip=header.source_sip,
        source_node=header.source_node,
        sip=header.sip,
        node=header.node,
        address=header.address,
        tag=header.tag,
        total=header.total,
        sent_ps=header.sent_ps,
        flow=None if flow is None else (flow.source_sip, flow.target_sip, flow.number),
        rows=None
        if rows is None
        else StridedBlock(rows.row_bytes, rows.pitch, rows.plane_rows, rows.plane_pitch),
        element=header.element,
        call=header.call,
    )


if TYPE_CHECKING or not IS_COMPILED:
    ArrivingTransfers = ReferenceArrivingTransfers
else:
    from sip_node.compiled.arriving_transfers import Arrivals, Partial

    class ArrivingTransfers(Arrivals, ReferenceArrivingTransfers):
        """The reference, which receives messages in C."""

        _partial = Partial

        def __init__(self, lp_of: Mapping[int, int]) -> None:
            ReferenceArrivingTransfers.__init__(self, lp_of)
            self.bind(self._begun, self._next)
