"""Packets in messages from other LPs: each message continues a transfer, or begins one.

The other end of the link is `packet_runs.py`. A link numbers its transfers, and a run of packets
has the number of its transfer; so a transfer is one object here as well, whose payload comes with
its last packet.
"""

from collections.abc import Mapping
from typing import NoReturn, Protocol

from runtime.core.errors import ProtocolError
from runtime.wire.frames import Message
from runtime.wire.packets import CARRIERS, PacketKind
from sip_node.chip.fabric import packet as packets
from sip_node.chip.fabric.packet import FabricTransfer, Kind
from sip_node.chip.run_block import RunBlock, run_of

MANY_PACKETS = CARRIERS | {PacketKind.READ, PacketKind.LINK_CREDIT}
"""Kinds of transfers with several packets; of LINK_CREDIT these are the credits of one step."""


class ReceivingEnd(Protocol):
    """Where packets of another LP enter a SIP."""

    def arrive_run(self, source: int, transfer: FabricTransfer, run: RunBlock) -> str:
        """The packets of a run come; returns the rule of the link that one of them breaks."""
        ...


class PartialTransfer:
    """A transfer of which some packets have come, and the bytes in them."""

    def __init__(self, transfer: FabricTransfer) -> None:
        self.transfer = transfer
        self.nbytes = 0


class ArrivingTransfers:
    """The transfers that other LPs send to the SIPs of this one, from first to last message.

    `lp_of` gives the LP of a SIP. What breaks a rule is a `ProtocolError` of the sending LP.
    """

    def __init__(self, lp_of: Mapping[int, int]) -> None:
        self._lp_of = lp_of
        self._begun: dict[tuple[int, int, int], PartialTransfer] = {}
        self._next: dict[tuple[int, int], int] = {}

    def check_at_rest(self) -> None:
        """Check after a run that every transfer has ended."""
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

    def transfer(self, message: Message, run: RunBlock) -> FabricTransfer:
        """The transfer that the run of a message belongs to; with its last packet, its payload."""
        source, target, number = key = message.source, message.target, run.number
        begun = self._begun.get(key)
        if run.begins:
            due = self._next.get((source, target), 0)
            if number != due:
                self._refuse(message, number, f"begins, the next to begin is number {due}")
            self._next[source, target] = due + 1
            begun = self._begun[key] = PartialTransfer(_transfer_of(run))
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


def _fault(begun: PartialTransfer, run: RunBlock, payload_bytes: int) -> str:
    """The rule that the next run of a transfer breaks, or nothing; counts its bytes."""
    fault = _packet_fault(begun, run)
    total = begun.transfer.total
    if not fault and payload_bytes:
        carried = total if begun.transfer.kind in CARRIERS else 0
        if payload_bytes != carried:
            fault = f"has a payload of {payload_bytes:,} B"
    return fault and f"({_described(begun.transfer)}) {fault}"


def _packet_fault(begun: PartialTransfer, run: RunBlock) -> str:
    kind, total, end = begun.transfer.kind, begun.transfer.total, 0
    # A READ requests what it does not carry.
    is_read = kind is Kind.READ
    for index in range(run.packets):
        size = run.size(index)
        begun.nbytes += size
        end = max(end, run.begin(index) + (1 if is_read else size))
    if kind in CARRIERS:
        if end > total:
            return "has a packet beyond its end"
        if begun.nbytes > total or (run.ends and begun.nbytes < total):
            return f"has packets of {begun.nbytes:,} B"
    elif is_read and end > total:
        return "has a packet beyond its end"
    elif kind not in MANY_PACKETS and not (run.ends and run.packets == 1):
        return "has more than one packet"
    return ""


def _name(source: int, target: int, number: int) -> str:
    return f"transfer {number} from SIP {source} to SIP {target}"


def _described(transfer: FabricTransfer) -> str:
    return f"{transfer.kind.name} of {transfer.total:,} B"


def _transfer_of(run: RunBlock) -> FabricTransfer:
    """The transfer that a run begins, without its payload."""
    transfer = packets.new_transfer(run.kind, run.source_sip, run.source_node, run.sip, run.node)
    transfer.address, transfer.tag = run.address, run.tag
    transfer.total, transfer.sent_ps = run.total, run.sent_ps
    transfer.flow, transfer.rows = run.flow, run.rows
    transfer.element, transfer.call = run.element, run.call
    return transfer
