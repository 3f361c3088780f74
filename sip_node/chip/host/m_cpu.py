"""The M_CPU of a cube: forwards commands to its PEs."""

from sip_node.chip.fabric.packet import Packet
from sip_node.chip.host.commands import CubeCommand, PeCommand
from sip_node.chip.host.relay_cpu import RelayCpu


class MCpu(RelayCpu):
    """One M_CPU."""

    def _commanded(self, packet: Packet) -> None:
        assert isinstance(packet.body, CubeCommand)
        graph = self._chip.graph
        cube = graph.nodes[self._node].cube
        parts = [
            (graph.pe(cube, pe), PeCommand(order), nbytes)
            for pe, order, nbytes in packet.body.orders
        ]
        self._port.forward(packet, parts)
