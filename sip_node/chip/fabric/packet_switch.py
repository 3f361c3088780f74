"""The endpoint of a component with several parts: each packet goes to the part for its kind."""

from collections.abc import Callable, Mapping

from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.kernel.component import Endpoint

Receiver = Callable[[Packet, int], None]
"""Takes a packet with the time of its tail."""


class ForeignPart(Endpoint):
    """A part that is a function."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Pass a packet on."""
        self._receiver(packet, tail_ps)


class PacketSwitch(Endpoint):
    """Passes packets to `receivers`, each with the time of its tail."""

    def __init__(self, receivers: Mapping[Kind, Receiver]) -> None:
        # By kind.
        self._parts: list[Endpoint | None] = [None] * (max(Kind) + 1)
        for kind, receiver in receivers.items():
            self._parts[kind] = _part_of(receiver)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Pass a packet whose head has arrived to the part for its kind."""
        part = self._parts[packet.transfer.kind]
        assert part is not None, f"a packet of kind {packet.transfer.kind}"
        part.accept(packet, tail_ps)


def _part_of(receiver: Receiver) -> Endpoint:
    """The endpoint whose `accept` it is: compiled, that is called without Python."""
    owner = getattr(receiver, "__self__", None)
    if isinstance(owner, Endpoint) and receiver == owner.accept:
        return owner
    return ForeignPart(receiver)
