"""Packets in messages between LPs: runs of the packets of one transfer that cross one link.

    sender     packet, packet, ...  -->  PacketRuns, by transfer  -->  one message for each
    receiver   one message  -->  ArrivingTransfers: the transfer, checked  -->  packet, packet, ...

Each link numbers its transfers in the order of their first packets. A step of an LP makes at most
one message for each transfer and link; the first has the header of the transfer, the last its
payload. The packets of a step may so be in another order than they cross, but each has its place
in the total order of its inbox. At the receiver a transfer is one object as well, by its number,
whose payload comes with its last packet.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from runtime.core.errors import ProtocolError
from runtime.wire.frames import Message
from runtime.wire.packets import CARRIERS, PacketKind
from sip_node.chip.fabric import packet as packets
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.ports.link_egress import LinkEnd
from sip_node.chip.ports.run_block import OpenRun, RunBlock, run_of

if TYPE_CHECKING:
    from sip_node.chip.ports.ucie_ports import UciePorts

MANY_PACKETS = CARRIERS | {PacketKind.READ, PacketKind.LINK_CREDIT}
"""Kinds of transfers with several packets; of LINK_CREDIT these are the credits of one step."""


class PacketRuns(LinkEnd):
    """The end of the link from SIP `source` to `target` of another LP: packets become messages."""

    def __init__(self, source: int, target: int) -> None:
        super().__init__(takes_early=True)
        self.source, self._target = source, target
        self._transfers = 0
        # Of the transfers that have begun and not ended.
        self._numbers: dict[FabricTransfer, int] = {}
        # In the order of their first packets; the open run of each transfer.
        self._runs: list[OpenRun] = []
        self._open: dict[FabricTransfer, OpenRun] = {}

    def arrive(
        self,
        head_ps: int,
        source: int,  # noqa: ARG002 - `source` of this object
        seq: int,
        tail_ps: int,
        packet: Packet,
    ) -> None:
        """Keep a packet for the next message of its transfer."""
        transfer = packet.transfer
        run = self._open.get(transfer)
        if run is None or run.is_full():
            run = self._begin(transfer)
        run.append(head_ps, tail_ps, seq, packet)
        if packet.last:
            self._numbers.pop(transfer, None)

    def take(self) -> list[tuple[int, Message]]:
        """(SIP that the transfer is for, message) for every run; no run goes on after this."""
        messages: list[tuple[int, Message]] = []
        for run in self._runs:
            message = Message(
                time_ps=run.time_ps,
                source=self.source,
                target=self._target,
                seq=run.seq,
                body=run.packed(),
                # With the last packet: a receiver uses the bytes when all of them have come.
                payload=bytes(run.transfer.payload) if run.ends else b"",
            )
            messages.append((run.transfer.sip, message))
        self._runs = []
        self._open.clear()
        return messages

    def _begin(self, transfer: FabricTransfer) -> OpenRun:
        number = self._numbers.get(transfer)
        is_first = number is None
        if number is None:
            number = self._numbers[transfer] = self._transfers
            self._transfers += 1
        run = self._open[transfer] = OpenRun(transfer, number, is_first=is_first)
        self._runs.append(run)
        return run


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

    def receive(self, message: Message, end: "UciePorts") -> None:
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
