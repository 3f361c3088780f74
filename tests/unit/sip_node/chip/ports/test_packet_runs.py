"""Packets between LPs: a transfer is the same on both sides of a link, as are its packets."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from runtime.wire.codec import PeerDecoder, encode_peer
from runtime.wire.frames import Frame, Message
from runtime.wire.packet_blocks import run_of
from runtime.wire.packets import CARRIERS, MAX_RUN_PACKETS, PacketKind
from sip_node.chip.fabric.packet import ELEMENTS, FabricTransfer, Kind, Packet
from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.ports.packet_runs import ArrivingTransfers, PacketRuns
from sip_node.chip.ports.run_block import RunBlock
from tests.support.packets import fields_of, transfer_header

LP_OF = {0: 0, 1: 1, 2: 0}
sizes, indexes = st.integers(1, 1 << 40), st.integers(0, 255)
transfers = st.builds(
    FabricTransfer,
    kind=st.sampled_from([Kind(kind) for kind in PacketKind]),
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
    call=st.text(max_size=9),
)


class Crossed(NamedTuple):
    """A packet as the other end of a link receives it."""

    head_ps: int
    seq: int
    tail_ps: int
    transfer: FabricTransfer
    begin: int
    size: int
    last: bool


class Link:
    """The link from SIP 0 on LP 0 to SIP 1 on LP 1; it numbers the packets that cross."""

    def __init__(self) -> None:
        self.runs, self.transfers = PacketRuns(0, 1), ArrivingTransfers(LP_OF)
        self.seq = 0

    def put(self, packet: Packet) -> None:
        self.runs.arrive(100 + 10 * self.seq, 0, self.seq, 105 + 10 * self.seq, packet)
        self.seq += 1

    def step(self) -> list[Message]:
        """The messages of a step, encoded and decoded."""
        frame = Frame((0,), 0, tuple(message for _, message in self.runs.take()))
        decoder = PeerDecoder(1, [0, 1, 0], lambda message: "")
        arrived = decoder.decode(encode_peer(0, 0, frame)).content
        assert isinstance(arrived, Frame)
        return list(arrived.messages)

    def arrive(self, messages: Iterable[Message]) -> list[Crossed]:
        """The packets of messages, in the total order."""
        self.crossed: list[Crossed] = []
        for message in messages:
            self.transfers.receive(message, self)
        return sorted(self.crossed)

    def arrive_run(self, source: int, transfer: FabricTransfer, run: RunBlock) -> str:
        """Keep the packets of a run."""
        assert source == 0
        for index in range(run.packets):
            self.crossed.append(
                Crossed(
                    head_ps=run.head_ps(index),
                    seq=run.seq(index),
                    tail_ps=run.tail_ps(index),
                    transfer=transfer,
                    begin=run.begin(index),
                    size=run.size(index),
                    last=run.ends and index == run.packets - 1,
                )
            )
        return ""


def write(nbytes: int, **fields: Any) -> FabricTransfer:
    return FabricTransfer(Kind.WRITE, 0, 7, 1, 8, total=nbytes, **fields)


def split(transfer: FabricTransfer, size: int) -> list[Packet]:
    ends = range(size, transfer.total + size, size)
    return [Packet(transfer, end - size, size, end == transfer.total) for end in ends]


@given(transfers)
def test_a_transfer_arrives_with_all_that_its_packets_share(transfer: FabricTransfer) -> None:
    link = Link()
    last = transfer.kind not in CARRIERS
    link.put(Packet(transfer, 0, 1, last))
    [arrived] = link.arrive(link.step())
    assert fields_of(arrived.transfer) == fields_of(transfer)


# Which of three transfers the next packet belongs to; None ends a step.
@given(st.lists(st.none() | st.integers(0, 2), max_size=24), st.sampled_from(sorted(CARRIERS)))
def test_packets_cross_unchanged_in_any_steps(order: list[int | None], kind: PacketKind) -> None:
    link = Link()
    waiting = [
        split(
            FabricTransfer(Kind(kind), 0, 7, 1, 8, tag=tag, total=12, payload=bytes([tag] * 12)), 3
        )
        for tag in range(3)
    ]
    left, arrived = list[Packet](), list[Crossed]()
    for choice in [*order, *range(3), None]:
        if choice is None:
            arrived += link.arrive(link.step())
        elif waiting[choice]:
            left.append(waiting[choice].pop(0))
            link.put(left[-1])
    assert [(each.head_ps, each.seq, each.tail_ps) for each in arrived] == [
        (100 + 10 * seq, seq, 105 + 10 * seq) for seq in range(len(left))
    ]
    assert [(each.transfer.tag, each.begin, each.size, each.last) for each in arrived] == [
        (packet.transfer.tag, packet.begin, packet.size, packet.last) for packet in left
    ]
    # One object for each transfer, with all bytes as soon as its last packet has come.
    for tag in {each.transfer.tag for each in arrived}:
        [transfer] = {each.transfer for each in arrived if each.transfer.tag == tag}
        ended = any(each.last for each in arrived if each.transfer is transfer)
        assert bytes(transfer.payload) == (bytes([tag] * 12) if ended else b"")


def test_a_transfer_costs_one_header_and_a_step_one_message_for_it() -> None:
    link = Link()
    first, *others = split(write(40, payload=bytes(40)), 10)
    link.put(first)
    [begun] = link.step()
    for packet in others:
        link.put(packet)
    [ended] = link.step()
    assert (run_of(begun).header, run_of(ended).header) == (
        transfer_header(total=40, tag=0, sent_ps=0),
        None,
    )
    assert (len(run_of(begun).seqs), len(run_of(ended).seqs)) == (1, 3)
    assert (len(begun.payload), len(ended.payload)) == (0, 40)
    assert (ended.time_ps, ended.seq) == (110, 1)
    assert not link.step()


def test_a_run_that_is_full_is_followed_by_another() -> None:
    link = Link()
    for packet in split(write(MAX_RUN_PACKETS + 1), 1):
        link.put(packet)
    full, rest = link.step()
    assert (len(run_of(full).seqs), len(run_of(rest).seqs)) == (MAX_RUN_PACKETS, 1)
    assert len(link.arrive([full, rest])) == MAX_RUN_PACKETS + 1


def test_credits_of_a_network_that_leave_in_one_step_are_one_message() -> None:
    link = Link()
    credit = FabricTransfer(Kind.LINK_CREDIT, 0, 3, 1, 3, tag=2)
    for step in range(2):
        for size in (64, 128):
            link.put(Packet(credit, 0, size))
        [message] = link.step()
        assert [each.size for each in link.arrive([message])] == [64, 128]
        assert run_of(message).number == step


def test_reads_request_pieces_of_one_block() -> None:
    link = Link()
    # The last request has more bytes on the link than it requests.
    read = FabricTransfer(Kind.READ, 0, 7, 1, 8, total=530)
    for begin in (0, 256, 512):
        link.put(Packet(read, begin, 32, begin == 512))
    assert [each.begin for each in link.arrive(link.step())] == [0, 256, 512]
