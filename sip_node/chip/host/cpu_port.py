"""How a CPU of the chip (IO_CPU, M_CPU, PE_CPU) sends control packets and keeps track of the answers."""

from collections.abc import Sequence

from msgspec import Struct

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.host.commands import CommandDone, Gathering


class _Outstanding(Struct):
    """A command of ours that others carry out, and the packet that asked us for it."""

    asked_by: Packet
    answers: Gathering


class CpuPort:
    """The control side of one CPU at `node`."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        self._engine, self._fabric = chip.engine, chip.fabric
        self._sip, self._node = chip.sip, node
        self._control_bytes = chip.topology.control_bytes
        self._outstanding: dict[int, _Outstanding] = {}
        self._tags = 0

    def send(self, node: int, body: object, nbytes: int, tag: int = 0) -> None:
        """Send `body` as a packet of `nbytes`, at least the size of a control packet."""
        size = max(nbytes, self._control_bytes)
        now_ps = self._engine.now_ps
        packet = Packet(
            Kind.CONTROL,
            self._sip,
            self._node,
            self._sip,
            node,
            size,
            tag=tag,
            total=size,
            sent_ps=now_ps,
            body=body,
        )
        self._fabric.send(packet, self._node, now_ps)

    def forward(self, asked_by: Packet, commands: Sequence[tuple[int, object, int]]) -> None:
        """Send every `(node, body, bytes)`; when all have answered, `asked_by` gets one answer."""
        self._tags += 1
        self._outstanding[self._tags] = _Outstanding(asked_by, Gathering(len(commands)))
        for node, body, nbytes in commands:
            self.send(node, body, nbytes, self._tags)

    def answer(self, asked_by: Packet, done: CommandDone) -> None:
        """Tell whoever sent `asked_by` that it is done."""
        self.send(asked_by.source_node, done, self._control_bytes, asked_by.tag)

    def answered(self, packet: Packet) -> None:
        """An answer to one of our commands has come in."""
        assert isinstance(packet.body, CommandDone)
        waiting = self._outstanding[packet.tag]
        together = waiting.answers.add(packet.body)
        if together is not None:
            del self._outstanding[packet.tag]
            self.answer(waiting.asked_by, together)
