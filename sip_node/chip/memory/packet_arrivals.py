"""The packets that arrive at a memory while a launch is recorded."""

from array import array

from sip_node.chip.fabric.packet import FabricTransfer, Packet
from sip_node.kernel.containers.int_array import IntArray


class PacketArrivals:
    """The packets that arrive from `begin_ps` on, behind `turns` events of the memory."""

    def __init__(self, begin_ps: int, turns: int) -> None:
        self._begin_ps, self._turns = begin_ps, turns
        self._numbers: dict[FabricTransfer, int] = {}
        self._fields = IntArray()

    def append(self, packet: Packet, head_ps: int, tail_ps: int, turns: int) -> None:
        """A packet arrives, with its head at `head_ps`, behind `turns` events of the memory."""
        transfer, fields = packet.transfer, self._fields
        number = self._numbers.get(transfer)
        if number is None:
            number = self._numbers[transfer] = len(self._numbers)
        # A launch may have a million packets, so they are no objects.
        fields.append(head_ps - self._begin_ps)
        fields.append(tail_ps - self._begin_ps)
        fields.append(number)
        fields.append(packet.begin)
        fields.append(packet.size)
        fields.append(packet.last)
        fields.append(turns - self._turns)

    @property
    def transfers(self) -> list[FabricTransfer]:
        """The transfers of all packets, by their numbers."""
        return list(self._numbers)

    @property
    def fields(self) -> "array[int]":
        """The numbers of each packet, one after the other: times of its head and tail, number of
        its transfer, first byte, size, whether it is the last one, events of the memory before it.
        """
        fields = self._fields
        return array("q", [fields.values[index] for index in range(fields.size)])
