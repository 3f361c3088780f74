"""The packets of a transfer: where each begins in the memory of its receiver."""

from copy import copy

import pytest

from runtime.wire.packets import PacketKind
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet, ReferenceTransfer
from sip_node.chip.fabric.packet_train import PacketTrain, QueueTimes
from sip_node.chip.strided_block import StridedBlock
from tests.support.packets import fields_of


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


@pytest.mark.parametrize(
    "transfer", [FabricTransfer, ReferenceTransfer], ids=["of the core", "reference"]
)
def test_a_copy_of_a_transfer_is_another_transfer_with_equal_fields(
    transfer: type[FabricTransfer],
) -> None:
    first = transfer(
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
    second = copy(first)
    assert fields_of(second) == fields_of(first)
    second.sip, second.body = 17, None
    assert (first.sip, first.body) == (3, "9")
    assert first not in (second, None)


@pytest.mark.parametrize(
    "transfer", [FabricTransfer, ReferenceTransfer], ids=["of the core", "reference"]
)
def test_a_transfer_without_more_fields_has_no_bytes(transfer: type[FabricTransfer]) -> None:
    empty = fields_of(transfer(Kind.ACK, 0, 1, 2, 3))
    assert empty == (Kind.ACK, 0, 1, 2, 3, 0, 0, 0, 0, b"", None, None, None, 0, "", None)
