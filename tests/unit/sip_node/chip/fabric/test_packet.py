"""The packets of a transfer: where each begins in the memory of its receiver."""

from runtime.wire.packets import PacketKind
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.strided_block import StridedBlock


def test_a_packet_begins_at_its_offset_and_in_a_block_with_gaps_at_the_first_row() -> None:
    bytes_of = FabricTransfer(Kind.WRITE, 0, 1, 2, 3, address=1000, total=64)
    rows_of = FabricTransfer(
        Kind.WRITE, 0, 1, 2, 3, address=1000, total=64, rows=StridedBlock(16, 256)
    )
    assert Packet(bytes_of, 32, 16).address == 1032
    assert Packet(rows_of, 32, 16).address == 1000


def test_the_kinds_that_cross_between_sips_have_the_numbers_of_the_wire() -> None:
    assert {kind.name: kind.value for kind in PacketKind} == {
        kind.name: kind.value for kind in Kind if kind not in (Kind.IPCQ_ARRIVAL, Kind.CONTROL)
    }


def test_transfers_with_equal_fields_are_two() -> None:
    first, second = (FabricTransfer(Kind.ACK, 0, 1, 2, 3) for _ in range(2))
    assert len({first, second}) == 2
