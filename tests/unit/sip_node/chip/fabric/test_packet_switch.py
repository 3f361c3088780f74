from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.fabric.packet_switch import PacketSwitch
from tests.support.packets import lone_packet


def test_a_packet_goes_to_the_part_for_its_kind() -> None:
    writes, acks = list[tuple[Packet, int]](), list[tuple[Packet, int]]()
    inner = PacketSwitch({Kind.ACK: lambda *taken: acks.append(taken)})
    outer = PacketSwitch({Kind.WRITE: lambda *taken: writes.append(taken), Kind.ACK: inner.accept})
    write = lone_packet(Kind.WRITE, (0, 1), (0, 2), 64)
    ack = lone_packet(Kind.ACK, (0, 2), (0, 1), 16)
    outer.accept(write, 5)
    outer.accept(ack, 7)
    assert (writes, acks) == ([(write, 5)], [(ack, 7)])
