"""Packets, and headers of packets between SIPs."""

from typing import Any

from runtime.wire.packets import PacketHeader, PacketKind
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet


def lone_packet(
    kind: Kind, source: tuple[int, int], target: tuple[int, int], nbytes: int, **fields: Any
) -> Packet:
    """The packet of a transfer of `nbytes` between two nodes, each given as (sip, node)."""
    return Packet(FabricTransfer(kind, *source, *target, total=nbytes, **fields), 0, nbytes)


def packet_header(**changes: Any) -> PacketHeader:
    """A WRITE of 64 bytes from SIP 0 to address 0 of SIP 1, with other values for some fields."""
    values: dict[str, Any] = {
        "kind": PacketKind.WRITE,
        "source_sip": 0,
        "source_node": 7,
        "sip": 1,
        "node": 8,
        "size": 64,
        "address": 0,
        "tag": 1,
        "total": 64,
        "last": True,
        "sent_ps": 5,
        "tail_ps": 1,
        "flow": None,
        "rows": None,
        "begin": 0,
        "element": 0,
        "call": "",
    }
    return PacketHeader(**values | changes)
