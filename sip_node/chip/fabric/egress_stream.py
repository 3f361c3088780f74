"""Transfers that leave a port packet by packet.

A packet reserves the port when the packet before it begins, so another transfer, or a packet that
arrives, gets the port between two packets of a transfer:

    port   | A0 | B0 | A1 | C0 | B1 | ...       A1 has reserved when A0 began, C came after that

Packets are cut-through: each is sent when its first byte is on the port, and its tail follows.
"""

from collections.abc import Callable
from typing import Any

import sip_node.chip.fabric.packet as packets
from sip_node.chip.fabric.packet import FabricTransfer, PacketSender
from sip_node.chip.fabric.server import FifoServer
from sip_node.kernel.component import Component
from sip_node.kernel.outlet import Outlet
from sip_node.pdes.engine import Engine

_LEAVE = 0


class Departure:
    """A transfer on its way out: the packet of `nbytes` from `begin` on has reserved the port.

    The last byte of that packet leaves at `left_ps`.
    """

    def __init__(self, transfer: FabricTransfer, packet_bytes: int) -> None:
        self.transfer, self.packet_bytes = transfer, packet_bytes
        self.begin = self.nbytes = self.left_ps = 0


class EgressStream(Component):
    """The transfers from `node` through `port`.

    `left(transfer, left_ps)` is called when the last packet begins, with the time when its last
    byte has left.
    """

    def __init__(
        self,
        engine: Engine,
        port: FifoServer,
        fabric: PacketSender,
        node: int,
        left: Callable[[FabricTransfer, int], None],
    ) -> None:
        self.join(engine)
        self._port, self._outlet, self._left = port, Outlet(fabric, node), left

    def start(self, transfer: FabricTransfer, packet_bytes: int) -> None:
        """Send a transfer in packets of `packet_bytes`, from now on."""
        self._reserve(Departure(transfer, packet_bytes))

    def _reserve(self, departure: Departure) -> None:
        port, now_ps, transfer = self._port, self.engine.now_ps, departure.transfer
        departure.nbytes = min(departure.packet_bytes, transfer.total - departure.begin)
        # Head and tail are both here: TCM has all bytes, and the port alone limits their rate.
        start_ps = port.serve(now_ps, now_ps, departure.nbytes)
        departure.left_ps = port.tail_ps
        if transfer.train is not None:
            transfer.train.at_port(now_ps, start_ps, port.tail_ps)
        self.later(start_ps, _LEAVE, departure)

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - it has one step
        """Send the packet that the port serves now, then reserve for the next one."""
        departure: Departure = subject
        transfer, begin, left_ps = departure.transfer, departure.begin, departure.left_ps
        departure.begin = begin + departure.nbytes
        last = departure.begin == transfer.total
        packet = packets.new_packet(transfer, begin, departure.nbytes, last)
        self._outlet.send(packet, left_ps)
        if last:
            self._left(transfer, left_ps)
        else:
            # Not before: what came to the port meanwhile has its turn between these two packets.
            self._reserve(departure)
