"""Packets in messages between LPs: runs of the packets of one transfer that cross one link.

    sender     packet, packet, ...  -->  PacketRuns, by transfer  -->  one message for each
    receiver   one message  -->  ArrivingTransfers: the transfer, checked  -->  packet, packet, ...

Each link numbers its transfers in the order of their first packets. A step of an LP makes at most
one message for each transfer and link; the first has the header of the transfer, the last its
payload. The packets of a step may so be in another order than they cross, but each has its place
in the total order of its inbox.
"""

from runtime.wire.frames import Message
from sip_node.chip.fabric.packet import FabricTransfer, Packet
from sip_node.chip.link_egress import LinkEnd
from sip_node.chip.run_block import OpenRun


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
