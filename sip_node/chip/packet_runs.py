"""Packets in messages between LPs: runs of the packets of one transfer that cross one link.

    sender     packet, packet, ...  -->  PacketRuns, by transfer  -->  one message for each
    receiver   one message  -->  ArrivingTransfers: the transfer, checked  -->  packet, packet, ...

Each link numbers its transfers in the order of their first packets. A step of an LP makes at most
one message for each transfer and link; the first has the header of the transfer, the last its
payload. The packets of a step may so be in another order than they cross, but each has its place
in the total order of its inbox.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from runtime.core.compiled.choice import IS_COMPILED
from runtime.wire.frames import Message
from runtime.wire.packet_blocks import pack, word_limits
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

MANY_PACKETS = CARRIERS | {PacketKind.READ, PacketKind.LINK_CREDIT}
"""Kinds of transfers with several packets; of LINK_CREDIT these are the credits of one step."""


class _OpenRun:
    """The packets of a transfer that wait for a message."""

    __slots__ = ("begins", "ends", "heads_ps", "is_first", "number", "seqs", "sizes", "tails_ps")

    def __init__(self, number: int, *, is_first: bool) -> None:
        self.number, self.is_first = number, is_first
        self.ends = False
        self.heads_ps: list[int] = []
        self.tails_ps: list[int] = []
        self.seqs: list[int] = []
        self.begins: list[int] = []
        self.sizes: list[int] = []


class ReferencePacketRuns:
    """The end of the link from SIP `source` to `target` of another LP: packets become messages."""

    def __init__(self, source: int, target: int) -> None:
        self.source, self._target = source, target
        self._transfers = 0
        # Of the transfers that have begun and not ended.
        self._numbers: dict[FabricTransfer, int] = {}
        # In the order of their first packets; the open run of each transfer.
        self._runs: list[tuple[FabricTransfer, _OpenRun]] = []
        self._open: dict[FabricTransfer, _OpenRun] = {}

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

    def _begin(self, transfer: FabricTransfer) -> _OpenRun:
        number = self._numbers.get(transfer)
        run = _OpenRun(self._transfers if number is None else number, is_first=number is None)
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

    def _message(self, transfer: FabricTransfer, run: _OpenRun) -> Message:
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
            body=pack(body),
            payload=bytes(transfer.payload) if run.ends else b"",
        )


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


if TYPE_CHECKING or not IS_COMPILED:
    PacketRuns = ReferencePacketRuns
else:
    from sip_node.compiled.packet_runs import Runs
    from sip_node.compiled.run_block import set_limits

    set_limits(
        word_limits(),
        {
            "all": [Kind(kind) for kind in PacketKind],
            "carriers": CARRIERS,
            "many_packets": MANY_PACKETS,
            "read": PacketKind.READ,
        },
        StridedBlock,
    )

    class PacketRuns(Runs):
        """The twin of `ReferencePacketRuns`."""

        def __init__(self, source: int, target: int) -> None:
            super().__init__(source, target, Message, MAX_RUN_PACKETS)
