"""The endpoint of a component with several parts: each packet goes to the part for its kind."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.fabric.packet import Kind, Packet


class ReferencePacketSwitch:
    """Passes packets to `receivers`, each with the time of its tail."""

    def __init__(self, receivers: Mapping[Kind, Callable[[Packet, int], None]]) -> None:
        self._receivers = receivers

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Pass a packet whose head has arrived to the part for its kind."""
        self._receivers[packet.transfer.kind](packet, tail_ps)


if TYPE_CHECKING or not IS_COMPILED:
    PacketSwitch = ReferencePacketSwitch
else:
    from sip_node.compiled.packet_switch import PacketSwitch  # noqa: F401 - the name of this module
