"""The chips of an LP that shares the machine with no other one, as one machine."""

from collections.abc import Sequence
from typing import Any

from sip_node.chip.fabric.packet import Packet
from sip_node.chip.launches.chip_state import ChipState
from sip_node.chip.pe.pe import Pe
from sip_node.chip.pe.queue_table import QueueState


class ChipsOfLp:
    """All chips of a run, in the order of their SIPs, on one engine."""

    def __init__(self, chips: Sequence[ChipState]) -> None:
        self.chips = chips
        self.engine: Any = chips[0].engine
        self._places = {each.context.sip: place for place, each in enumerate(chips)}
        self._fabrics = {id(each.fabric): place for place, each in enumerate(chips)}
        self._inboxes = {id(each.chip.boundary.inbox): place for place, each in enumerate(chips)}
        self.lookahead_ps = chips[0].context.sips.least_entry_ps
        """No message from SIP to SIP takes less."""

    def place_of_sip(self, sip: int) -> int:
        """The place of the chip of a SIP."""
        return self._places[sip]

    def of_sip(self, sip: int) -> ChipState:
        """The chip of a SIP."""
        return self.chips[self._places[sip]]

    def sent(self, source: int, chip: ChipState) -> int:
        """The number of packets that a neighbour has sent to a chip."""
        return self.of_sip(source).chip.boundary.egresses[chip.context.sip].sent

    def place_of_fabric(self, actor: object) -> int | None:
        """The place of the chip whose fabric an actor is; None for another actor."""
        return self._fabrics.get(id(actor))

    def place_of_inbox(self, actor: object) -> int | None:
        """The place of the chip whose inbox an actor is; None for another actor."""
        return self._inboxes.get(id(actor))

    def credited(self, packet: Packet) -> QueueState | None:
        """The queue that a credit is for; None where something sleeps at its PE, or runs."""
        transfer = packet.transfer
        pe = self.of_sip(transfer.sip).context.reach(transfer.node)
        assert isinstance(pe, Pe), "a credit goes to a PE"
        queue = pe.ipcq.sending(transfer.address)
        if queue is None or queue.is_starved or pe.cpu.running:
            return None
        return queue
