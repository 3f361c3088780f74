"""Pieces of a READ between packets of others, on two channels written down by hand."""

from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.memory.hbm import PseudoChannels
from sip_node.chip.memory.memory_packets import MemoryPackets, TransferStore
from sip_node.chip.memory.transaction_queue import AccessQueue
from sip_node.pdes.engine import Engine
from tests.support.packets import lone_packet
from tests.support.topologies import variant

BURST, NODE, NS = 256, 1, 1000
"""A channel of 1 GB/s serves a burst of 256 B in 256 ns."""


class LoggedMemory(TransferStore):
    """A slice of two channels: when data leave it, and when writes are stored, in ns."""

    def __init__(self) -> None:
        super().__init__(keeps_data=False)
        self.engine = Engine()
        self.left: list[int] = []
        self.stored: dict[int, int] = {}
        topology = variant(
            hbm__num_pcs=2,
            hbm__burst_bytes=BURST,
            hbm__pc_bw_gbs=1.0,
            cube__hbm_ctrl__efficiency=1.0,
            cube__hbm_ctrl__switch_penalty_ns=0.0,
        )
        self._packets = MemoryPackets(
            engine=self.engine,
            fabric=self,
            node=NODE,
            base=0,
            service=AccessQueue(self.engine, PseudoChannels("slice", topology)),
            packet_bytes=2 * BURST,
            latency_ps=0,
            store=self,
        )

    def send(self, packet: Packet, node: int, tail_ps: int) -> None:
        self.left.append(self.engine.now_ps // NS)

    def written(self, packet: Packet) -> None:
        self.stored[packet.transfer.tag] = self.engine.now_ps // NS

    def answer(self, request: FabricTransfer) -> FabricTransfer:
        return FabricTransfer(Kind.DATA, 0, NODE, 0, request.source_node, total=request.total)

    def at(self, time_ns: int, kind: Kind, tag: int, address: int, nbytes: int) -> None:
        packet = lone_packet(kind, (0, 2), (0, NODE), nbytes, tag=tag, address=address)
        self.engine.at(time_ns * NS, self._packets.accept, packet, time_ns * NS)

    def run(self) -> None:
        while self.engine.next_ps() < 10**9:
            self.engine.step()


def test_the_next_piece_of_a_read_waits_from_the_begin_of_its_predecessor_on_any_channel() -> None:
    memory = LoggedMemory()
    # Two bursts keep the second channel busy until 512 ns.
    for tag in (1, 2):
        memory.at(0, Kind.WRITE, tag, BURST, BURST)
    # Each piece has a burst on both channels. The first one begins at 0 and at 512 ns, so the next
    # one waits from 0 on, and begins when the first channel is free, at 256 ns.
    memory.at(0, Kind.READ, 3, 0, 4 * BURST)
    # A write that comes then finds the second channel taken by both pieces, until 1,024 ns.
    memory.at(300, Kind.WRITE, 4, BURST, BURST)
    memory.run()
    assert memory.stored == {1: 256, 2: 512, 4: 1280}
    # A piece leaves when both channels have begun to serve it.
    assert memory.left == [512, 768]
