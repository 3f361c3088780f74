"""Transfers that leave a port packet by packet.

A packet reserves the port when the packet before it begins, so another transfer, or a packet that
arrives, gets the port between two packets of a transfer:

    port   | A0 | B0 | A1 | C0 | B1 | ...       A1 has reserved when A0 began, C came after that

Packets are cut-through: each is sent when its first byte is on the port, and its tail follows.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.fabric.packet import FabricTransfer, Packet, PacketSender
from sip_node.chip.fabric.server import Server
from sip_node.pdes.engine import Engine


class _Departure(Struct, gc=False):
    """A transfer on its way out: the packet of `nbytes` from `begin` on has reserved the port.

    The last byte of that packet leaves at `left_ps`.
    """

    transfer: FabricTransfer
    packet_bytes: int
    begin: int = 0
    nbytes: int = 0
    left_ps: int = 0


class ReferenceEgressStream:
    """The transfers from `node` through `port`.

    `left(transfer, left_ps)` is called when the last packet begins, with the time when its last
    byte has left.
    """

    def __init__(
        self,
        engine: Engine,
        port: Server,
        fabric: PacketSender,
        node: int,
        left: Callable[[FabricTransfer, int], None],
    ) -> None:
        self._engine, self._port, self._fabric = engine, port, fabric
        self._node, self._left = node, left

    def start(self, transfer: FabricTransfer, packet_bytes: int) -> None:
        """Send a transfer in packets of `packet_bytes`, from now on."""
        self._reserve(_Departure(transfer, packet_bytes))

    def _reserve(self, departure: _Departure) -> None:
        now_ps = self._engine.now_ps
        left_bytes = departure.transfer.total - departure.begin
        departure.nbytes = min(departure.packet_bytes, left_bytes)
        begin_ps, departure.left_ps = self._port.reserve(now_ps, now_ps, departure.nbytes)
        train = departure.transfer.train
        if train is not None:
            train.at_port(now_ps, begin_ps, departure.left_ps)
        self._engine.at(begin_ps, self._leave, departure)

    def _leave(self, departure: _Departure) -> None:
        """Send the packet that the port serves now, then reserve for the next one."""
        transfer, begin, left_ps = departure.transfer, departure.begin, departure.left_ps
        departure.begin = begin + departure.nbytes
        last = departure.begin == transfer.total
        self._fabric.send(Packet(transfer, begin, departure.nbytes, last), self._node, left_ps)
        if last:
            self._left(transfer, left_ps)
        else:
            self._reserve(departure)


if TYPE_CHECKING or not IS_COMPILED:
    EgressStream = ReferenceEgressStream
else:
    from sip_node.compiled.egress_stream import EgressStream  # noqa: F401 - the name of this module
