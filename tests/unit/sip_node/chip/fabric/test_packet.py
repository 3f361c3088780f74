"""A packet is the same on both sides of a link between SIPs."""

from hypothesis import given
from hypothesis import strategies as st

from runtime.wire.codec import decode_peer, encode_peer
from runtime.wire.messages import Frame
from sip_node.chip.fabric.packet import ELEMENTS, Kind, Packet, from_message, to_message
from sip_node.chip.strided_block import StridedBlock

sizes, places = st.integers(1, 1 << 40), st.integers(0, 255)
packets = st.builds(
    Packet,
    kind=st.sampled_from([kind for kind in Kind if kind is not Kind.CONTROL]),
    source_sip=places,
    source_node=places,
    sip=places,
    node=places,
    size=sizes,
    address=st.integers(0, (1 << 51) - 1),
    tag=sizes,
    total=sizes,
    last=st.booleans(),
    sent_ps=sizes,
    payload=st.binary(max_size=50),
    flow=st.none() | st.tuples(places, places, sizes),
    rows=st.none() | st.builds(StridedBlock, sizes, sizes),
    begin=sizes,
    element=st.integers(0, len(ELEMENTS) - 1),
)


@given(packets, sizes, sizes)
def test_a_packet_crosses_a_link_unchanged(packet: Packet, head_ps: int, length_ps: int) -> None:
    message = to_message(packet, 3, 4, 17, head_ps, head_ps + length_ps)
    _, frame = decode_peer(*encode_peer("run", 0, Frame(0, 0, (message,))), "run")
    assert isinstance(frame, Frame)
    arrived, tail_ps = from_message(frame.messages[0])
    arrived.payload = bytes(arrived.payload)
    assert (arrived, tail_ps) == (packet, head_ps + length_ps)
