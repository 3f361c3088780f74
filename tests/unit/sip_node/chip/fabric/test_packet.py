"""The packets of a transfer: where each begins in the memory of its receiver."""

from copy import copy

from runtime.core.run_tables import NONE
from runtime.wire.packets import PacketKind
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet, new_packet, new_transfer
from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.records.packet_train import PacketTrain, QueueTimes
from tests.support.packets import declared, fields_of


def test_a_packet_begins_at_its_offset_and_in_a_block_with_gaps_at_the_first_row() -> None:
    bytes_of = FabricTransfer(Kind.WRITE, 0, 1, 2, 3, address=1000, total=64)
    rows_of = FabricTransfer(
        Kind.WRITE, 0, 1, 2, 3, address=1000, total=64, rows=StridedBlock(16, 256)
    )
    assert Packet(bytes_of, 32, 16).address == 1032
    assert Packet(rows_of, 32, 16).address == 1000


INSIDE = (Kind.IPCQ_ARRIVAL, Kind.CONTROL, Kind.ATOMIC, Kind.OLD)
"""The kinds that stay inside a SIP: a kernel has pointers to memory of its own SIP alone."""


def test_the_kinds_that_cross_between_sips_have_the_numbers_of_the_wire() -> None:
    assert {kind.name: kind.value for kind in PacketKind} == {
        kind.name: kind.value for kind in Kind if kind not in INSIDE
    }


def test_transfers_with_equal_fields_are_two() -> None:
    first, second = (FabricTransfer(Kind.ACK, 0, 1, 2, 3) for _ in range(2))
    assert len({first, second}) == 2


def test_a_copy_of_a_transfer_is_another_transfer_with_equal_fields() -> None:
    first = FabricTransfer(
        kind=Kind.IPCQ_DATA,
        source_sip=1,
        source_node=2,
        sip=3,
        node=4,
        address=1 << 50,
        tag=5,
        total=6,
        sent_ps=7,
        payload=b"8",
        body="9",
        flow=(10, 11, 12),
        rows=StridedBlock(13, 14),
        element=15,
        call="16",
        train=PacketTrain(QueueTimes()),
    )
    first.step = 18
    second = copy(first)
    assert fields_of(second) == fields_of(first)
    second.sip, second.body = 17, None
    assert (first.sip, first.body) == (3, "9")
    assert first not in (second, None)


def test_a_transfer_without_more_fields_has_no_bytes() -> None:
    empty = fields_of(FabricTransfer(Kind.ACK, 1, 2, 3, 4))
    assert fields_of(new_transfer(Kind.ACK, 1, 2, 3, 4)) == empty
    assert [name for name, value in empty.items() if value] == [
        *("kind", "node", "sip", "source_node", "source_sip", "step")
    ]
    assert (empty["payload"], empty["call"], empty["step"]) == (b"", "", NONE)


def test_a_new_packet_is_one_of_this_sip_that_has_queued_nowhere() -> None:
    transfer = FabricTransfer(Kind.READ, 0, 1, 2, 3)
    packet, other = new_packet(transfer, 4, 5, False), Packet(transfer, 4, 5, last=False)
    assert packet.transfer is transfer
    for name in declared("Packet"):
        assert getattr(packet, name) == getattr(other, name)
    assert (packet.begin, packet.size, packet.last, packet.came_from) == (4, 5, False, None)
    assert (packet.link_ps, packet.longest_link, packet.train) == (0, "", None)


def test_a_packet_keeps_the_link_where_it_has_queued_longest() -> None:
    packet = new_packet(FabricTransfer(Kind.READ, 0, 1, 2, 3), 0, 5, True)
    packet.enter(PacketTrain(QueueTimes()))
    for waited_ps, link in ((3, "a"), (7, "b"), (7, "c"), (1, "d")):
        packet.queued(waited_ps, link)
    assert (packet.link_ps, packet.longest_ps, packet.longest_link) == (18, 7, "b")
    assert copy(packet).longest_link == "b"
    assert packet.train is not None
    assert (packet.train.times.link_ps, packet.train.times.link) == (18, "b")
