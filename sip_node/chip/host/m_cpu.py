"""The M_CPU of a cube: forwards commands to its PEs."""

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.host.commands import CommandDone, CubeCommand, PeCommand
from sip_node.chip.host.cpu_port import CpuPort


class MCpu:
    """One M_CPU.

    Its overhead is part of the route: the fabric adds it when a packet enters the node.
    """

    def __init__(self, chip: ChipContext, node: int) -> None:
        self._chip, self._node = chip, node
        self._port = CpuPort(chip, node)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take a command of the IO_CPU or an answer of a PE, when its last byte has arrived."""
        self._chip.engine.at(tail_ps, self._received, packet)

    def _received(self, packet: Packet) -> None:
        body = packet.transfer.body
        if isinstance(body, CommandDone):
            self._port.answered(packet)
            return
        assert isinstance(body, CubeCommand)
        graph = self._chip.graph
        cube = graph.nodes[self._node].cube
        parts = [
            (graph.pe(cube, pe), PeCommand(order), nbytes) for pe, order, nbytes in body.orders
        ]
        self._port.forward(packet, parts)
