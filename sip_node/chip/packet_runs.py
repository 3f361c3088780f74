"""Packets in messages between LPs: runs of the packets of one transfer that cross one link.

    sender     packet, packet, ...  -->  PacketRuns, by transfer  -->  one message for each
    receiver   one message  -->  ArrivingTransfers: the transfer, checked  -->  packet, packet, ...

Each link numbers its transfers in the order of their first packets. A step of an LP makes at most
one message for each transfer and link; the first has the header of the transfer, the last its
payload. The packets of a step may so be in another order than they cross, but each has its place
in the total order of its inbox.
"""

from collections.abc import Iterator, Mapping
from operator import add
from typing import TYPE_CHECKING, Any, NoReturn

from runtime.core.errors import ProtocolError
from runtime.wire.frames import Message
from runtime.wire.packets import (
    CARRIERS,
    MAX_RUN_PACKETS,
    PacketKind,
    PacketRun,
    TransferFlow,
    TransferHeader,
    TransferRows,
)
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.strided_block import StridedBlock
from sip_node.compiled.choice import IS_COMPILED

_MANY_PACKETS = CARRIERS | {PacketKind.READ, PacketKind.LINK_CREDIT}
"""Kinds of transfers with several packets; of LINK_CREDIT these are the credits of one step."""


class ReferenceOpenRun:
    """The packets of a transfer that wait for a message."""

    __slots__ = ("begins", "ends", "heads_ps", "is_first", "number", "seqs", "sizes", "tails_ps")

    def __init__(self, number: int, is_first: bool) -> None:  # noqa: FBT001 - as in the twin
        self.number, self.is_first = number, is_first
        self.ends = False
        self.heads_ps: list[int] = []
        self.tails_ps: list[int] = []
        self.seqs: list[int] = []
        self.begins: list[int] = []
        self.sizes: list[int] = []


class ReferencePacketRuns:
    """The end of the link from SIP `source` to `target` of another LP: packets become messages."""

    _open_run = ReferenceOpenRun

    def __init__(self, source: int, target: int) -> None:
        self.source, self._target = source, target
        self._transfers = 0
        # Of the transfers that have begun and not ended.
        self._numbers: dict[FabricTransfer, int] = {}
        # In the order of their first packets; the open run of each transfer.
        self._runs: list[tuple[FabricTransfer, ReferenceOpenRun]] = []
        self._open: dict[FabricTransfer, ReferenceOpenRun] = {}

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
        if run is None or len(run.seqs) == MAX_RUN_PACKETS:
            run = self._begin(transfer)
        run.heads_ps.append(head_ps)
        run.tails_ps.append(tail_ps - head_ps)
        run.seqs.append(seq)
        run.begins.append(packet.begin)
        run.sizes.append(packet.size)
        if packet.last:
            run.ends = True
            self._numbers.pop(transfer, None)

    def _begin(self, transfer: FabricTransfer) -> ReferenceOpenRun:
        number = self._numbers.get(transfer)
        run = self._open_run(self._transfers if number is None else number, number is None)
        if number is None:
            self._numbers[transfer] = self._transfers
            self._transfers += 1
        self._open[transfer] = run
        self._runs.append((transfer, run))
        return run

    def take(self) -> Iterator[tuple[int, Message]]:
        """(SIP that the transfer is for, message) for every run; no run goes on after this."""
        runs, self._runs = self._runs, []
        self._open.clear()
        for transfer, run in runs:
            yield transfer.sip, self._message(transfer, run)

    def _message(self, transfer: FabricTransfer, run: ReferenceOpenRun) -> Message:
        body = PacketRun(
            number=run.number,
            header=header_of(transfer) if run.is_first else None,
            ends=run.ends,
            heads_ps=tuple(run.heads_ps),
            tails_ps=tuple(run.tails_ps),
            seqs=tuple(run.seqs),
            begins=tuple(run.begins),
            sizes=tuple(run.sizes),
        )
        return Message(
            time_ps=run.heads_ps[0],
            source=self.source,
            target=self._target,
            seq=run.seqs[0],
            body=body,
            payload=transfer.payload if run.ends else b"",
        )


if TYPE_CHECKING or not IS_COMPILED:
    PacketRuns = ReferencePacketRuns
else:
    from sip_node.compiled.packet_runs import OpenRun, Runs

    class PacketRuns(Runs, ReferencePacketRuns):
        """The reference, which takes packets in C."""

        _open_run = OpenRun

        def __init__(self, *args: Any) -> None:
            ReferencePacketRuns.__init__(self, *args)
            self.bind(self._open, self._numbers, self._begin, MAX_RUN_PACKETS)


class _PartialTransfer:
    """A transfer of which some packets have come, and the bytes in them."""

    __slots__ = ("nbytes", "transfer")

    def __init__(self, transfer: FabricTransfer) -> None:
        self.transfer = transfer
        self.nbytes = 0


class ArrivingTransfers:
    """The transfers that other LPs send to the SIPs of this one, from first to last message.

    `lp_of` gives the LP of a SIP. What breaks a rule is a `ProtocolError` of the sending LP.
    """

    def __init__(self, lp_of: Mapping[int, int]) -> None:
        self._lp_of = lp_of
        self._begun: dict[tuple[int, int, int], _PartialTransfer] = {}
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

    def transfer(self, message: Message, run: PacketRun) -> FabricTransfer:
        """The transfer that the run of a message belongs to; with its last packet, its payload."""
        source, target, number = key = message.source, message.target, run.number
        begun = self._begun.get(key)
        if run.header is not None:
            due = self._next.get((source, target), 0)
            if number != due:
                self._refuse(message, f"begins, the next to begin is number {due}")
            self._next[source, target] = due + 1
            begun = self._begun[key] = _PartialTransfer(transfer_of(run.header))
        elif begun is None:
            self._refuse(message, "continues, but has not begun or has ended")
        fault = _fault(begun, run, len(message.payload))
        if fault:
            self._refuse(message, fault)
        if run.ends:
            del self._begun[key]
            begun.transfer.payload = message.payload
        return begun.transfer

    def _refuse(self, message: Message, fault: str) -> NoReturn:
        assert message.body is not None
        name = _name(message.source, message.target, message.body.number)
        raise ProtocolError(self._peer(message.source), f"{name} {fault}")

    def _peer(self, source: int) -> str:
        return f"LP {self._lp_of[source]}"


def _fault(begun: _PartialTransfer, run: PacketRun, payload_bytes: int) -> str:
    """The rule that the next run of a transfer breaks, or nothing; counts its bytes."""
    fault = _packet_fault(begun, run)
    total = begun.transfer.total
    if not fault and payload_bytes:
        carried = total if begun.transfer.kind in CARRIERS else 0
        if payload_bytes != carried:
            fault = f"has a payload of {payload_bytes:,} B"
    return fault and f"({_described(begun.transfer)}) {fault}"


def _packet_fault(begun: _PartialTransfer, run: PacketRun) -> str:
    kind, total = begun.transfer.kind, begun.transfer.total
    begun.nbytes += sum(run.sizes)
    if kind in CARRIERS:
        if max(map(add, run.begins, run.sizes)) > total:
            return "has a packet beyond its end"
        if begun.nbytes > total or (run.ends and begun.nbytes < total):
            return f"has packets of {begun.nbytes:,} B"
    elif kind is Kind.READ and max(run.begins) >= total:
        return "has a packet beyond its end"
    elif kind not in _MANY_PACKETS and not (run.ends and len(run.sizes) == 1):
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


def header_of(transfer: FabricTransfer) -> TransferHeader:
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
