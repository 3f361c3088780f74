"""Packets between LPs: a transfer is the same on both sides of a link, as are its packets."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.errors import ProtocolError
from runtime.wire.codec import PeerDecoder, encode_peer
from runtime.wire.frames import Frame, Message
from runtime.wire.packets import CARRIERS, MAX_RUN_PACKETS, PacketKind
from sip_node.chip.fabric.packet import ELEMENTS, FabricTransfer, Kind, Packet
from sip_node.chip.packet_runs import (
    ArrivingTransfers,
    PacketRuns,
    header_of,
    packets_of,
    transfer_of,
)
from sip_node.chip.strided_block import StridedBlock
from tests.support.packets import fields_of, packet_run, run_message, transfer_header

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
        decoder = PeerDecoder("run", 1, [0, 1, 0], lambda body: "")
        _, arrived = decoder.decode(*encode_peer("run", 0, frame))
        assert isinstance(arrived, Frame)
        return list(arrived.messages)

    def arrive(self, messages: Iterable[Message]) -> list[Crossed]:
        """The packets of messages, in the total order."""
        return sorted(
            Crossed(
                head_ps=head_ps,
                seq=seq,
                tail_ps=tail_ps,
                transfer=packet.transfer,
                begin=packet.begin,
                size=packet.size,
                last=packet.last,
            )
            for message in messages
            for head_ps, seq, tail_ps, packet in self._packets(message)
        )

    def _packets(self, message: Message) -> Iterable[tuple[int, int, int, Packet]]:
        assert message.body is not None
        return packets_of(self.transfers.transfer(message, message.body), message.body)


def write(nbytes: int, **fields: Any) -> FabricTransfer:
    return FabricTransfer(Kind.WRITE, 0, 7, 1, 8, total=nbytes, **fields)


def split(transfer: FabricTransfer, size: int) -> list[Packet]:
    ends = range(size, transfer.total + size, size)
    return [Packet(transfer, end - size, size, end == transfer.total) for end in ends]


@given(transfers)
def test_the_header_of_a_transfer_has_all_that_its_packets_share(transfer: FabricTransfer) -> None:
    arrived = transfer_of(header_of(transfer))
    assert fields_of(arrived) == fields_of(transfer)


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
    assert begun.body is not None
    assert ended.body is not None
    assert (begun.body.header, ended.body.header) == (header_of(write(40)), None)
    assert (len(begun.body.seqs), len(ended.body.seqs)) == (1, 3)
    assert (len(begun.payload), len(ended.payload)) == (0, 40)
    assert (ended.time_ps, ended.seq) == (110, 1)
    assert not link.step()


def test_a_run_that_is_full_is_followed_by_another() -> None:
    link = Link()
    for packet in split(write(MAX_RUN_PACKETS + 1), 1):
        link.put(packet)
    full, rest = link.step()
    assert full.body is not None
    assert rest.body is not None
    assert (len(full.body.seqs), len(rest.body.seqs)) == (MAX_RUN_PACKETS, 1)
    assert len(link.arrive([full, rest])) == MAX_RUN_PACKETS + 1


def test_credits_of_a_network_that_leave_in_one_step_are_one_message() -> None:
    link = Link()
    credit = FabricTransfer(Kind.LINK_CREDIT, 0, 3, 1, 3, tag=2)
    for step in range(2):
        for size in (64, 128):
            link.put(Packet(credit, 0, size))
        [message] = link.step()
        assert [each.size for each in link.arrive([message])] == [64, 128]
        assert message.body is not None
        assert message.body.number == step


def test_reads_request_pieces_of_one_block() -> None:
    link = Link()
    read = FabricTransfer(Kind.READ, 0, 7, 1, 8, total=1000)
    for begin in (0, 256, 512):
        link.put(Packet(read, begin, 32, begin == 512))
    assert [each.begin for each in link.arrive(link.step())] == [0, 256, 512]


MORE: dict[str, Any] = {
    "heads_ps": (9, 10),
    "tails_ps": (0, 0),
    "seqs": (0, 1),
    "begins": (0, 32),
    "sizes": (32, 32),
}
HALF: dict[str, Any] = {"sizes": (32,), "ends": False}
WRITE = transfer_header()


@pytest.mark.parametrize(
    ("runs", "payload", "fault"),
    [
        ([packet_run(WRITE, number=1)], 0, "1 from SIP 2 to SIP 1 begins, the next to begin is "),
        ([packet_run(WRITE, **HALF)] * 2, 0, "transfer 0 .* begins, the next to begin is number 1"),
        ([packet_run(None)], 0, "transfer 0 .* continues, but has not begun or has ended"),
        ([packet_run(WRITE), packet_run(None)], 0, "transfer 0 .* continues, but has not begun"),
        ([packet_run(WRITE, begins=(1,))], 0, r"\(WRITE of 64 B\) has a packet beyond its end"),
        ([packet_run(WRITE, sizes=(63,))], 0, r"\(WRITE of 64 B\) has packets of 63 B"),
        ([packet_run(WRITE, **HALF), packet_run(None)], 0, r"has packets of 96 B"),
        ([packet_run(WRITE, **MORE)], 65, r"\(WRITE of 64 B\) has a payload of 65 B"),
        (
            [packet_run(transfer_header(kind=PacketKind.ACK), **MORE)],
            0,
            r"\(ACK of 64 B\) has more than one packet",
        ),
        (
            [packet_run(transfer_header(kind=PacketKind.IPCQ_CREDIT), ends=False)],
            0,
            r"\(IPCQ_CREDIT of 64 B\) has more than one packet",
        ),
        (
            [packet_run(transfer_header(kind=PacketKind.READ), begins=(64,))],
            0,
            r"\(READ of 64 B\) has a packet beyond its end",
        ),
        (
            [packet_run(transfer_header(kind=PacketKind.READ))],
            64,
            r"\(READ of 64 B\) has a payload of 64 B",
        ),
    ],
)
def test_packets_that_do_not_continue_their_transfer_are_the_fault_of_the_sender(
    runs: list[Any], payload: int, fault: str
) -> None:
    arriving = ArrivingTransfers({1: 4, 2: 3})
    *before, last = [run_message(run, bytes(payload), source=2, target=1) for run in runs]
    for message in before:
        arriving.transfer(message, runs[0])
    with pytest.raises(ProtocolError, match=fault) as raised:
        arriving.transfer(last, runs[-1])
    assert raised.value.peer == "LP 3"


def test_a_transfer_that_never_ends_is_the_fault_of_the_sender() -> None:
    arriving = ArrivingTransfers({1: 4, 2: 3})
    arriving.check_at_rest()
    first, last = packet_run(WRITE, **HALF), packet_run(None, **HALF | {"ends": True})
    arriving.transfer(run_message(first, source=2, target=1), first)
    fault = r"LP 3: transfer 0 from SIP 2 to SIP 1 \(WRITE of 64 B\) has no last packet: 32 B have"
    with pytest.raises(ProtocolError, match=fault):
        arriving.check_at_rest()
    arriving.transfer(run_message(last, source=2, target=1), last)
    arriving.check_at_rest()
