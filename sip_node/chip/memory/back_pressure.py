"""Back-pressure of a memory: with credits it accepts and serves no more than it has room for.

    routers --> buffer of requests --> service --> queue of replies --> routers
                a packet has left it               too long: no further
                when its service begins            service begins

Without it, the requests that a memory cannot serve yet, and the replies that it cannot send yet,
would wait outside of the network without a limit, and the senders would not notice. A memory that
waits goes on in the end: replies have virtual networks of their own, and PEs, CPUs and the host
accept them at any time.
"""

from sip_node.chip.fabric.credited_fabric import CreditedFabric
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.memory.storage import HbmController, Sram


class BackPressure:
    """The coupling of the memory at `node` to the routers, with room for `limit_bytes` each way."""

    def __init__(
        self, fabric: CreditedFabric, node: int, memory: HbmController | Sram, limit_bytes: int
    ) -> None:
        self._fabric, self._node, self._queue = fabric, node, memory.queue
        self._limit_bytes = limit_bytes
        self._is_held = False
        memory.port.packets.on_service = self._begun
        fabric.attach(node, memory, limit_bytes, self._left)

    def _begun(self, packet: Packet) -> None:
        """The service of a packet has begun: the buffer has room again."""
        self._fabric.release(packet)
        if self._fabric.waiting_bytes(self._node) > self._limit_bytes:
            self._is_held = True
            self._queue.hold()

    def _left(self, _reply: Packet) -> None:
        if self._is_held and self._fabric.waiting_bytes(self._node) <= self._limit_bytes:
            self._is_held = False
            self._queue.resume()
