"""The M_CPU of a cube: forwards commands to its PEs, and counts them at a barrier."""

from typing import Any, Literal

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.host.commands import CommandDone, CubeCommand
from sip_node.chip.host.cpu_port import CpuPort
from sip_node.chip.kernel import BarrierSignal, LaunchBarrier
from sip_node.kernel.component import Component

_ARRIVED = 0


class MCpu(Component):
    """The M_CPU of a cube.

    Its overhead is part of the route: the fabric adds it when a packet enters the node.
    """

    def __init__(self, chip: ChipContext, node: int) -> None:
        self.join(chip.engine)
        graph, cube = chip.graph, chip.graph.nodes[node].cube
        self._chip, self._cube, self._port = chip, cube, CpuPort(chip, node)
        self._pes: list[int] = [graph.pe(cube, pe) for pe in range(chip.topology.pes_per_cube)]

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take a command of the IO_CPU or an answer of a PE, when its last byte has arrived."""
        self.later(tail_ps, _ARRIVED, packet)

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - it has one step
        """A packet has arrived."""
        packet: Packet = subject
        body = packet.transfer.body
        if isinstance(body, CommandDone):
            self._port.answered(packet)
        elif isinstance(body, BarrierSignal):
            self._signalled(body)
        else:
            assert isinstance(body, CubeCommand)
            parts = [(self._pes[pe], order, nbytes) for pe, order, nbytes in body.orders]
            self._port.forward(packet, parts)

    def _signalled(self, signal: BarrierSignal) -> None:
        """A PE of this cube or another M_CPU has sent a signal of a barrier."""
        barrier, cube = signal.barrier, self._cube
        match signal.step:
            case "pe arrived":
                if not barrier.arrived(cube):
                    return
                # A tree of two levels: the first cube receives a packet of each cube and not of
                # each PE.
                if cube != barrier.first_cube:
                    self._signal(barrier, "cube arrived", self._m_cpu(barrier.first_cube))
                    return
            case "released":
                self._release_pes(barrier, cube)
                return
            case "cube arrived":
                pass
        if not barrier.cube_arrived():
            return
        # In the order of the cubes, which is that of the packets on the link of this M_CPU.
        for other in barrier.cubes:
            if other != cube:
                self._signal(barrier, "released", self._m_cpu(other))
        self._release_pes(barrier, cube)

    def _release_pes(self, barrier: LaunchBarrier, cube: int) -> None:
        for pe in barrier.cubes[cube]:
            self._signal(barrier, "released", self._chip.graph.pe(cube, pe))

    def _signal(
        self, barrier: LaunchBarrier, step: Literal["cube arrived", "released"], node: int
    ) -> None:
        self._port.send(node, BarrierSignal(barrier, step), self._chip.topology.control_bytes)

    def _m_cpu(self, cube: int) -> int:
        return self._chip.graph.m_cpu(cube)
