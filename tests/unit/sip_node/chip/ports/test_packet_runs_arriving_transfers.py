"""Packets from another LP continue its transfers, or are the fault of that LP."""

from typing import Any

import pytest
from msgspec.structs import replace

from runtime.core.errors import ProtocolError
from runtime.wire.packets import PacketKind, PacketRun
from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.ports.packet_runs import ArrivingTransfers
from tests.support.packets import packet_run, run_message, transfer_header


class AnyEnd:
    """The end of a link that takes every packet."""

    def arrive_run(self, source: int, transfer: FabricTransfer, run: PacketRun) -> str:
        return ""


ANY_END = AnyEnd()
MORE: dict[str, Any] = {
    "heads_ps": (9, 10),
    "tails_ps": (0, 0),
    "seqs": (0, 1),
    "begins": (0, 32),
    "sizes": (32, 32),
}
HALF: dict[str, Any] = {"sizes": (32,), "ends": False}
WRITE = transfer_header()
REST = packet_run(None, sizes=(32,))


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
        ([packet_run(WRITE, **HALF), REST], 65, r"\(WRITE of 64 B\) has a payload of 65 B"),
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
            [packet_run(transfer_header(kind=PacketKind.READ), **HALF), REST],
            64,
            r"\(READ of 64 B\) has a payload of 64 B",
        ),
    ],
)
def test_packets_that_do_not_continue_their_transfer_are_the_fault_of_the_sender(
    runs: list[Any], payload: int, fault: str
) -> None:
    arriving = ArrivingTransfers({1: 4, 2: 3})
    *before, last = [run_message(run, source=2, target=1) for run in runs]
    last = replace(last, payload=bytes(payload))
    for message in before:
        arriving.receive(message, ANY_END)
    with pytest.raises(ProtocolError, match=fault) as raised:
        arriving.receive(last, ANY_END)
    assert raised.value.peer == "LP 3"


def test_a_transfer_that_never_ends_is_the_fault_of_the_sender() -> None:
    arriving = ArrivingTransfers({1: 4, 2: 3})
    arriving.check_at_rest()
    first, last = packet_run(WRITE, **HALF), packet_run(None, **HALF | {"ends": True})
    arriving.receive(run_message(first, source=2, target=1), ANY_END)
    fault = r"LP 3: transfer 0 from SIP 2 to SIP 1 \(WRITE of 64 B\) has no last packet: 32 B have"
    with pytest.raises(ProtocolError, match=fault):
        arriving.check_at_rest()
    arriving.receive(run_message(last, source=2, target=1), ANY_END)
    arriving.check_at_rest()
