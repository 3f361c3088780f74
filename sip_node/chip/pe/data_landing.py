"""The DATA that a DMA engine has requested: packets land in TCM, or are sent on to another memory.

    DATA ---> port of TCM ---> landed              (a read)
    DATA ---> WRITE ---> another memory            (a copy: past our TCM, cut-through)

Either way a packet frees its place in the window when its last byte has come so far.
"""

from collections.abc import Callable

import sip_node.chip.fabric.packet as packets
from sip_node.chip.fabric.packet import FabricTransfer, Packet, PacketSender
from sip_node.chip.fabric.server import FifoServer
from sip_node.chip.pe.read_window import ReadWindow
from sip_node.kernel.component import Component
from sip_node.kernel.outlet import Outlet
from sip_node.pdes.engine import Engine


class DataLanding(Component):
    """The packets of DATA that arrive at `node`, whose TCM has `port`.

    `landed(transfer, landed_ps)` is called when all packets of a transfer have come; the last byte
    is in the memory at `landed_ps`.
    """

    def __init__(
        self,
        engine: Engine,
        port: FifoServer,
        fabric: PacketSender,
        node: int,
        window: ReadWindow,
        landed: Callable[[FabricTransfer, int], None],
    ) -> None:
        self.join(engine)
        self._port, self._outlet = port, Outlet(fabric, node)
        self._window, self._landed = window, landed
        self.writes: dict[int, FabricTransfer] = {}
        # The bytes that have come of transfers in several packets.
        self.come: dict[FabricTransfer, int] = {}

    def forward(self, write: FabricTransfer) -> None:
        """Send the DATA with the tag of `write` on as that transfer."""
        self.writes[write.tag] = write

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        data, come, write = packet.transfer, packet.size, None
        # Bytes are counted, since the answers to two READs may come in either order.
        if come < data.total:
            come += self.come.pop(data, 0)
        complete = come == data.total
        if not complete:
            self.come[data] = come
        if self.writes:
            write = self.writes.get(data.tag)
        if write is None:
            port, head_ps = self._port, self.engine.now_ps
            start_ps = port.serve(head_ps, tail_ps, packet.size)
            tail_ps = port.tail_ps
            if packet.train is not None:
                packet.train.at_port(head_ps, start_ps, tail_ps)
        else:
            if complete:
                write.payload = data.payload
                del self.writes[data.tag]
            # Which packet is the last one depends on the order of the answers, not on its bytes.
            onward = packets.new_packet(write, packet.begin, packet.size, complete)
            self._outlet.send(onward, tail_ps)
        # The port of the TCM is FIFO: when the last packet to come has landed, all have.
        if complete:
            # In this SIP: of a transfer between SIPs of one LP, no packet is in the other one now.
            data.train = packet.train
            self._landed(data, tail_ps)
        self._window.landed(tail_ps)
