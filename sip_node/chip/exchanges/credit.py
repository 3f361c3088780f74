"""A credit on its way to a queue, which can be made again."""

from typing import Any

from sip_node.chip.exchanges.chips_of_lp import ChipsOfLp
from sip_node.chip.fabric import packet as packets
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.pe.queue_table import QueueState
from sip_node.chip.records.packet_train import PacketTrain, QueueTimes

Key = tuple[Any, ...]


class NotAlone(Exception):  # noqa: N818 - no error, but an answer
    """Something else is to come than answers and credits."""


class Credit:
    """The credit in a packet, at `base_ps`; raises `NotAlone` where more than a queue notices it.

    `key` is equal for two that are the same, but for where their ring stands.
    """

    def __init__(self, chips: ChipsOfLp, packet: Packet, base_ps: int) -> None:
        queue, transfer = chips.credited(packet), packet.transfer
        if queue is None:
            raise NotAlone
        self.queue: QueueState = queue
        pair = queue.pair
        assert pair.tx_base is not None, "a queue that sends has a ring at the peer"
        self._ring, self._size, self._n_slots = pair.tx_base, pair.slot_size, pair.n_slots
        # Counted from the slot that is sent next.
        self._slot = ((transfer.address - self._ring) // self._size - queue.sent) % self._n_slots
        self._ends = transfer.source_sip, transfer.source_node, transfer.sip, transfer.node
        self._nbytes, self._came_from, self.sip = packet.size, packet.came_from, transfer.sip
        self._sent_ps = transfer.sent_ps - base_ps
        self._entrance_ps = packet.entrance_ps - base_ps
        # Of a run with records: how long it has queued so far.
        train = packet.train
        self._memory_ps = None if train is None else train.times.memory_ps
        self._queued = packet.link_ps, packet.longest_ps, packet.longest_link
        self.key: Key = (
            *self._ends,
            self._ring,
            self._slot,
            self._nbytes,
            *self._queued,
            self._memory_ps,
        )

    def packet(self, base_ps: int) -> Packet:
        """The credit again, as it is at `base_ps`; its queue has sent what it had sent then."""
        transfer = packets.new_transfer(Kind.IPCQ_CREDIT, *self._ends)
        slot = (self._slot + self.queue.sent) % self._n_slots
        transfer.address, transfer.sent_ps = self._ring + slot * self._size, base_ps + self._sent_ps
        made = packets.new_packet(transfer, 0, self._nbytes, last=True)
        made.entrance_ps, made.came_from = base_ps + self._entrance_ps, self._came_from
        made.link_ps, made.longest_ps, made.longest_link = self._queued
        if self._memory_ps is not None:
            times = QueueTimes()
            times.at_links(made.link_ps, made.longest_link)
            times.at_memory(self._memory_ps)
            # It is the only packet of its transfer, so the stages behind it do not matter.
            made.train = PacketTrain(times)
        return made
