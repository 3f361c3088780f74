"""The M_CPU of a cube: forwards commands to its PEs."""

from typing import TYPE_CHECKING

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.host.commands import CommandDone, CubeCommand
from sip_node.chip.host.cpu_port import CpuPort
from sip_node.compiled.choice import IS_COMPILED


class ReferenceMCpu:
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
        parts = [(graph.pe(cube, pe), order, nbytes) for pe, order, nbytes in body.orders]
        self._port.forward(packet, parts)


if TYPE_CHECKING or not IS_COMPILED:
    MCpu = ReferenceMCpu
else:
    from sip_node.compiled.control_port import CommandSpread

    class MCpu(CommandSpread, ReferenceMCpu):
        """The reference, whose commands and answers are handled in C."""

        def __init__(self, chip: ChipContext, node: int) -> None:
            super().__init__(chip, node)
            graph, cube = chip.graph, chip.graph.nodes[node].cube
            pes = range(chip.topology.pes_per_cube)
            self.bind(chip.engine, self._port, [graph.pe(cube, pe) for pe in pes])
