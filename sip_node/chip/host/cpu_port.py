"""The control port of a CPU (IO_CPU, M_CPU, PE_CPU): sends commands and collects their answers."""

from collections.abc import Sequence

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric import packet as packets
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.host.commands import CommandDone, Gathering
from sip_node.kernel.outlet import Outlet

_CONTROL = Kind.CONTROL


class ForwardedCommand:
    """A command that other CPUs carry out parts of, and the packet that it came with."""

    def __init__(self, command: Packet, answers: Gathering) -> None:
        self.command, self.answers = command, answers


class CpuPort:
    """The port of the CPU at `node`."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        self._engine, self._outlet = chip.engine, Outlet(chip.fabric, node)
        self._sip, self._node = chip.sip, node
        self._control_bytes = chip.topology.control_bytes
        self._forwarded: dict[int, ForwardedCommand] = {}
        self._tags = 0

    def send(self, node: int, body: object, nbytes: int, tag: int = 0) -> None:
        """Send `body` as a packet of `nbytes`, at least the size of a control packet."""
        # No packet is smaller than its header, which a control packet consists of.
        size = max(nbytes, self._control_bytes)
        now_ps = self._engine.now_ps
        command = packets.new_transfer(_CONTROL, self._sip, self._node, self._sip, node)
        command.body, command.tag = body, tag
        command.total, command.sent_ps = size, now_ps
        self._outlet.send(packets.new_packet(command, 0, size, last=True), now_ps)

    def forward(self, command: Packet, parts: Sequence[tuple[int, object, int]]) -> None:
        """Send every part, `(node, body, bytes)`; answer `command` when all have been answered."""
        # A tag of our own: several commands are forwarded at once, and answers name only the tag.
        self._tags += 1
        self._forwarded[self._tags] = ForwardedCommand(command, Gathering(len(parts)))
        for node, body, nbytes in parts:
            self.send(node, body, nbytes, self._tags)

    def answer(self, command: Packet, done: CommandDone) -> None:
        """Answer the sender of a command: it is done."""
        # The tag is the sender's: it finds its command by it.
        asked = command.transfer
        self.send(asked.source_node, done, self._control_bytes, asked.tag)

    def answered(self, packet: Packet) -> None:
        """Take an answer to one of the parts that we have sent."""
        tag, done = packet.transfer.tag, packet.transfer.body
        assert isinstance(done, CommandDone)
        forwarded = self._forwarded[tag]
        all_done = forwarded.answers.add(done)
        if all_done is not None:
            del self._forwarded[tag]
            self.answer(forwarded.command, all_done)
