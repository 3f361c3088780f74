"""What IO_CPU and M_CPU share: receive commands, forward parts of them, collect the answers."""

from abc import ABC, abstractmethod

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.host.cpu_port import CpuPort


class RelayCpu(ABC):
    """A CPU between the host and the PEs.

    Its overhead is part of the route: the fabric adds it when a packet enters the CPU's node.
    """

    def __init__(self, chip: ChipContext, node: int) -> None:
        self._chip, self._node = chip, node
        self._port = CpuPort(chip, node)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take a command from above or an answer from below, when its last byte has arrived."""
        self._chip.engine.at(tail_ps, self._received, packet)

    def _received(self, packet: Packet) -> None:
        if isinstance(packet.body, CommandDone):
            self._port.answered(packet)
        else:
            self._commanded(packet)

    @abstractmethod
    def _commanded(self, packet: Packet) -> None:
        """Forward the command in `packet.body`."""
