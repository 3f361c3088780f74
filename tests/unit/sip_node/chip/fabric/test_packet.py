"""A transfer is the same on both sides of a link between SIPs, as are the bounds of its packets."""

from dataclasses import dataclass

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from runtime.wire.codec import PeerDecoder, encode_peer
from runtime.wire.frames import Frame
from runtime.wire.packets import CARRIERS, PacketKind
from sip_node.chip.fabric.packet import (
    ELEMENTS,
    CrossingTransfers,
    FabricTransfer,
    Kind,
    Packet,
    to_message,
)
from sip_node.chip.strided_block import StridedBlock

sizes, indexes = st.integers(1, 1 << 40), st.integers(0, 255)
transfers = st.builds(
    FabricTransfer,
    kind=st.sampled_from([Kind(kind) for kind in PacketKind if kind not in CARRIERS]),
    source_sip=indexes,
    source_node=indexes,
    sip=indexes,
    node=indexes,
    address=st.integers(0, (1 << 51) - 1),
    tag=sizes,
    total=sizes,
    sent_ps=sizes,
    flow=st.none() | st.tuples(indexes, indexes, sizes),
    rows=st.none() | st.builds(StridedBlock, sizes, sizes, sizes, sizes),
    element=st.integers(0, len(ELEMENTS) - 1),
)


@dataclass
class Link:
    """The packets that have crossed from SIP 3 to SIP 4, which decodes them."""

    crossing: CrossingTransfers

    def cross(self, packet: Packet, head_ps: int = 5, tail_ps: int = 6) -> tuple[Packet, int]:
        message = to_message(packet, 3, 4, 17, head_ps, tail_ps)
        decoder = PeerDecoder("run", 1, (0, 0, 0, 0, 1), lambda body: "")
        _, frame = decoder.decode(*encode_peer("run", 0, Frame((0,), 0, (message,))))
        assert isinstance(frame, Frame)
        arrived, tail_ps = self.crossing.packet(frame.messages[0])
        arrived.transfer.payload = bytes(arrived.transfer.payload)
        return arrived, tail_ps


@given(transfers, sizes, st.integers(1, 1 << 30), st.booleans(), sizes, sizes)
def test_a_packet_crosses_a_link_unchanged(
    transfer: FabricTransfer,
    begin: int,
    size: int,
    last: bool,
    head_ps: int,
    length_ps: int,
) -> None:
    packet = Packet(transfer, begin, size, last)
    arrived, tail_ps = Link(CrossingTransfers()).cross(packet, head_ps, head_ps + length_ps)
    assert msgspec.structs.astuple(arrived.transfer) == msgspec.structs.astuple(transfer)
    assert (arrived.begin, arrived.size, arrived.last) == (begin, size, last)
    assert tail_ps == head_ps + length_ps


@given(st.sampled_from(sorted(CARRIERS)), st.binary(min_size=3, max_size=50))
def test_the_payload_of_a_transfer_crosses_a_link_with_its_last_packet(
    kind: PacketKind, payload: bytes
) -> None:
    transfer = FabricTransfer(Kind(kind), 3, 0, 4, 0, total=len(payload), payload=payload)
    link = Link(CrossingTransfers())
    first, _ = link.cross(Packet(transfer, 0, 2, last=False))
    assert not first.transfer.payload
    last, _ = link.cross(Packet(transfer, 2, len(payload) - 2))
    assert last.transfer is first.transfer
    assert first.transfer.payload == payload


def test_transfers_that_cross_together_are_kept_apart_by_all_that_names_them() -> None:
    link = Link(CrossingTransfers())
    names = [
        (Kind.READ, 3, 0, 4, 0, 1),
        (Kind.DATA, 3, 0, 4, 0, 1),
        (Kind.READ, 2, 0, 4, 0, 1),
        (Kind.READ, 3, 1, 4, 0, 1),
        (Kind.READ, 3, 0, 4, 1, 1),
        (Kind.READ, 3, 0, 4, 0, 2),
    ]
    sent = [FabricTransfer(*name[:5], tag=name[5], total=8) for name in names]
    first = [link.cross(Packet(each, 0, 4, last=False))[0].transfer for each in sent]
    assert len(set(first)) == len(names)
    assert [link.cross(Packet(each, 4, 4))[0].transfer for each in sent] == first
