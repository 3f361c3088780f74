"""What IO_CPU and M_CPU have in common: they take commands from above, pass them on below, and gather the answers."""

from abc import ABC, abstractmethod

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.host.cpu_port import CpuPort


class RelayCpu(ABC):
    """One CPU between the host and the PEs; its overhead is charged by the fabric when a packet enters its node."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        self._chip, self._node = chip, node
        self._port = CpuPort(chip, node)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """A command from above or an answer from below; it counts when its last byte is there."""
        self._chip.engine.at(tail_ps, self._received, packet)

    def _received(self, packet: Packet) -> None:
        if isinstance(packet.body, CommandDone):
            self._port.answered(packet)
        else:
            self._commanded(packet)

    @abstractmethod
    def _commanded(self, packet: Packet) -> None:
        """Pass the command in `packet.body` on."""
