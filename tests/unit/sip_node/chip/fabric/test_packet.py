"""A packet is the same on both sides of a link between SIPs."""

from hypothesis import given
from hypothesis import strategies as st

from runtime.wire.codec import PeerDecoder, encode_peer
from runtime.wire.frames import Frame
from runtime.wire.packets import CARRIERS, PacketKind
from sip_node.chip.fabric.packet import ELEMENTS, Kind, Packet, from_message, to_message
from sip_node.chip.strided_block import StridedBlock

sizes, indexes = st.integers(1, 1 << 40), st.integers(0, 255)
packets = st.builds(
    Packet,
    kind=st.sampled_from([Kind(kind) for kind in PacketKind if kind not in CARRIERS]),
    source_sip=indexes,
    source_node=indexes,
    sip=indexes,
    node=indexes,
    size=st.integers(1, 1 << 30),
    address=st.integers(0, (1 << 51) - 1),
    tag=sizes,
    total=sizes,
    last=st.booleans(),
    sent_ps=sizes,
    flow=st.none() | st.tuples(indexes, indexes, sizes),
    rows=st.none() | st.builds(StridedBlock, sizes, sizes, sizes, sizes),
    begin=sizes,
    element=st.integers(0, len(ELEMENTS) - 1),
)


@given(packets, sizes, sizes)
def test_a_packet_crosses_a_link_unchanged(packet: Packet, head_ps: int, length_ps: int) -> None:
    message = to_message(packet, 3, 4, 17, head_ps, head_ps + length_ps)
    decoder = PeerDecoder("run", 1, (0, 0, 0, 0, 1), lambda body: "")
    _, frame = decoder.decode(*encode_peer("run", 0, Frame((0,), 0, (message,))))
    assert isinstance(frame, Frame)
    arrived, tail_ps = from_message(frame.messages[0])
    arrived.payload = bytes(arrived.payload)
    assert (arrived, tail_ps) == (packet, head_ps + length_ps)


@given(st.sampled_from(sorted(CARRIERS)), st.binary(min_size=1, max_size=50))
def test_the_payload_of_a_packet_crosses_a_link_beside_it(kind: PacketKind, payload: bytes) -> None:
    packet = Packet(Kind(kind), 3, 0, 4, 0, len(payload), payload=payload)
    arrived, _ = from_message(to_message(packet, 3, 4, 0, 5, 6))
    assert bytes(arrived.payload) == payload
