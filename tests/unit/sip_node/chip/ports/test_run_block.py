"""Runs of packets as blocks of words: what one side packs the other opens, or refuses."""

import pytest
from msgspec.structs import replace

from runtime.wire import packet_blocks
from runtime.wire.frames import Message
from runtime.wire.packets import MAX_RUN_PACKETS, TransferFlow, TransferRows
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.ports.run_block import OpenRun, run_of
from tests.support.packets import packet_run, run_message, transfer_header

HEADER = transfer_header(
    total=64,
    address=1 << 40,
    flow=TransferFlow(0, 1, 7),
    rows=TransferRows(16, 32, 2, 128),
    element=3,
    call="all_reduce \u00e9",
)
PAIR = {"heads_ps": (9, 12), "tails_ps": (1, 0), "seqs": (4, 6), "begins": (0, 32)}


def test_a_run_that_begins_a_transfer_has_its_fields() -> None:
    run = run_of(run_message(packet_run(HEADER, number=5), source=0, target=1))
    assert (run.number, run.begins, run.ends, run.packets) == (5, True, True, 1)
    assert (run.kind, run.source_sip, run.source_node) == (Kind.WRITE, 0, HEADER.source_node)
    assert (run.sip, run.node, run.address, run.tag) == (1, HEADER.node, 1 << 40, HEADER.tag)
    assert (run.total, run.sent_ps, run.element) == (64, HEADER.sent_ps, 3)
    assert (run.flow, run.rows, run.call) == ((0, 1, 7), (16, 32, 2, 128), HEADER.call)


def test_a_run_has_the_fields_of_its_packets_by_index() -> None:
    message = run_message(packet_run(None, **PAIR, sizes=(32, 31), ends=False), source=0, target=1)
    run = run_of(message)
    assert (run.begins, run.ends, run.packets) == (False, False, 2)
    packets = [
        (run.head_ps(each), run.tail_ps(each), run.seq(each), run.begin(each), run.size(each))
        for each in range(2)
    ]
    assert packets == [(9, 10, 4, 0, 32), (12, 12, 6, 32, 31)]


def test_an_open_run_packs_what_the_structs_of_the_wire_pack() -> None:
    transfer = FabricTransfer(
        Kind.WRITE,
        0,
        HEADER.source_node,
        1,
        HEADER.node,
        address=1 << 40,
        tag=HEADER.tag,
        total=64,
        sent_ps=HEADER.sent_ps,
        flow=(0, 1, 7),
        rows=None,
        element=3,
        call=HEADER.call,
    )
    for is_first in (True, False):
        run = OpenRun(transfer, 5, is_first=is_first)
        run.append(9, 10, 4, Packet(transfer, 0, 32, False))
        run.append(12, 12, 6, Packet(transfer, 32, 32))
        header = replace(HEADER, rows=None) if is_first else None
        expected = packet_run(header, number=5, **PAIR, sizes=(32, 32))
        assert run.packed() == packet_blocks.pack(expected)
        assert (run.time_ps, run.seq, run.ends) == (9, 4, True)


def test_a_run_is_full_with_the_most_packets_of_a_message() -> None:
    transfer = FabricTransfer(Kind.WRITE, 0, 7, 1, 8, total=MAX_RUN_PACKETS)
    run = OpenRun(transfer, 0, is_first=True)
    for index in range(MAX_RUN_PACKETS):
        assert not run.is_full()
        run.append(index, index, index, Packet(transfer, index, 1, False))
    assert run.is_full()
    assert not run.ends


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (Message(9, 0, 1, 0), "field body.number: the block ends before it"),
        (
            replace(run_message(packet_run(HEADER), source=0, target=1), time_ps=8),
            "the first packet has another time or number",
        ),
        (
            run_message(packet_run(HEADER), bytes(63), source=0, target=1),
            "field payload: 63 bytes for a transfer WRITE of 64 bytes",
        ),
        (
            run_message(packet_run(HEADER, ends=False), bytes(64), source=0, target=1),
            "field payload: 64 bytes before the last packet",
        ),
    ],
)
def test_a_run_that_breaks_a_rule_is_refused_with_its_reason(message: Message, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        run_of(message)
