"""Rules of transfers from other SIPs that may enter a chip."""

from typing import Any

import pytest

from runtime.wire.frames import Message
from runtime.wire.packets import PacketKind, TransferFlow, TransferHeader, TransferRows
from sip_node.chip.chip import chip_spec
from sip_node.chip.ports.packet_rules import PacketRules
from tests.support.packets import packet_run, run_message, transfer_header
from tests.support.topologies import small

SPEC = chip_spec(small(system__sips__count=4), data=False)
RULES = PacketRules(SPEC)
HBM, SRAM, PE = SPEC.graph.hbm(0, 0), SPEC.graph.sram(0), SPEC.graph.pe(0, 0)
SIPS = SPEC.topology.sips
BASE = SPEC.addresses.pe_hbm_addr(1, 0, 0, 0)
SLICE = SPEC.topology.hbm_slice_bytes


def write(**changes: Any) -> TransferHeader:
    """64 bytes from a PE of SIP 0 to the first bytes of an HBM slice of SIP 1."""
    return transfer_header(**{"source_node": PE, "node": HBM, "address": BASE} | changes)


def of_run(header: TransferHeader | None) -> Message:
    return run_message(packet_run(header, sizes=(32,)), source=0, target=1)


@pytest.mark.parametrize(
    "header",
    [
        write(),
        write(address=BASE + SLICE - 64),
        write(kind=PacketKind.READ, total=SLICE),
        # The last of three planes ends with the slice.
        write(
            address=BASE + SLICE - 64 - 2 * 16 - 2 * 4096,
            total=3 * 80,
            rows=TransferRows(16, 16, 5, 4096),
        ),
        write(
            address=BASE + SLICE - 2 * 4096 - 4 * 100 - 16,
            total=2 * 5 * 16 + 80,
            rows=TransferRows(16, 100, 5, 4096),
        ),
        write(node=PE, address=SPEC.addresses.pe_tcm_addr(1, 0, 0, 0), kind=PacketKind.IPCQ_DATA),
        write(node=SRAM, address=SPEC.addresses.cube_sram_addr(1, 0, 0)),
        write(rows=TransferRows(16, 4096, 0, 0), total=128),
        write(address=BASE + SLICE - 3 * 4096 - 16, rows=TransferRows(16, 4096, 0, 0)),
        write(kind=PacketKind.ACK, source_node=HBM, node=PE),
        write(kind=PacketKind.DATA, source_node=SRAM, node=SPEC.graph.host),
        write(kind=PacketKind.IPCQ_CREDIT, node=PE, flow=TransferFlow(0, 1, 7)),
    ],
)
def test_a_transfer_that_names_what_exists_may_enter(header: TransferHeader) -> None:
    assert RULES.fault(of_run(header)) == ""


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        (write(sip=SIPS), f"SIP {SIPS} in a run with {SIPS} SIPs"),
        (write(source_sip=200), f"SIP 200 in a run with {SIPS} SIPs"),
        (write(flow=TransferFlow(0, 90, 1)), f"SIP 90 in a run with {SIPS} SIPs"),
        (
            write(source_node=SPEC.graph.io_noc),
            f"field source_node: node {SPEC.graph.io_noc} sends nothing to other SIPs",
        ),
        (write(node=SPEC.graph.host), f"field node: {SPEC.graph.host} is no memory"),
        (write(node=10**5), "field node: 100000 is no memory"),
        (
            write(kind=PacketKind.ACK, node=HBM),
            f"field node: node {HBM} receives no ACK",
        ),
        (
            write(address=BASE + SLICE - 63),
            f"field address: {BASE + SLICE - 63:#x} is not in the memory of node {HBM}",
        ),
        (write(address=0), f"field address: 0x0 is not in the memory of node {HBM}"),
        (
            write(kind=PacketKind.READ, total=SLICE, address=BASE + 1),
            f"field address: {BASE + 1:#x} is not in the memory of node {HBM}",
        ),
        (
            write(
                address=BASE + SLICE - 2 * 4096 - 4 * 100 - 15,
                total=2 * 5 * 16 + 80,
                rows=TransferRows(16, 100, 5, 4096),
            ),
            (
                f"field address: {BASE + SLICE - 2 * 4096 - 4 * 100 - 15:#x} is not in the memory "
                f"of node {HBM}"
            ),
        ),
        (
            write(total=32, rows=TransferRows(16, 0, 1, SLICE)),
            f"field address: {BASE:#x} is not in the memory of node {HBM}",
        ),
        (
            write(rows=TransferRows(16, SLICE // 3, 0, 0)),
            f"field address: {BASE:#x} is not in the memory of node {HBM}",
        ),
    ],
)
def test_a_transfer_that_names_something_else_is_described(
    header: TransferHeader, fault: str
) -> None:
    assert RULES.fault(of_run(header)) == fault


def test_the_header_of_a_transfer_is_checked_once() -> None:
    assert RULES.fault(of_run(None)) == ""


def test_a_message_without_packets_is_refused() -> None:
    fault = RULES.fault(Message(9, 0, 1, 0))
    assert fault == "field body.number: the block ends before it"
