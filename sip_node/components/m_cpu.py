"""The M_CPU of a cube: passes commands on to its PEs and gathers their answers."""

from sip_node.components.commands import CubeCommand, Done, PeCommand
from sip_node.components.packet import Packet
from sip_node.components.surroundings import Surroundings


class MCpu:
    """One M_CPU; its overhead is charged by the fabric when a packet enters its node."""

    def __init__(self, chip: Surroundings, node: int) -> None:
        self._engine, self._graph = chip.engine, chip.graph
        self._cube = chip.graph.nodes[node].cube
        self.port = chip.cpu_port(node)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """A command from above or an answer from below; it counts when its last byte is there."""
        self._engine.at(tail_ps, self._received, packet)

    def _received(self, packet: Packet) -> None:
        if isinstance(packet.body, Done):
            self.port.answered(packet)
            return
        assert isinstance(packet.body, CubeCommand)
        self.port.forward(
            packet,
            [(self._graph.pe(self._cube, pe), PeCommand(order), nbytes) for pe, order, nbytes in packet.body.orders],
        )
