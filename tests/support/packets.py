"""Packets, headers of transfers, and runs of packets between SIPs."""

import re
from pathlib import Path
from typing import Any

import sip_node
from runtime.wire.frames import Message
from runtime.wire.packet_blocks import pack
from runtime.wire.packets import PacketKind, PacketRun, TransferHeader
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet


def fields_of(transfer: FabricTransfer) -> dict[str, Any]:
    """The values of all fields of a transfer."""
    return {name: getattr(transfer, name) for name in declared("FabricTransfer")}


def declared(name: str) -> list[str]:
    """The fields of a class that `packet.pxd` declares."""
    types = (Path(sip_node.__file__).parent / "chip" / "fabric" / "packet.pxd").read_text("utf-8")
    body = types.split(f"cdef class {name}:")[1].split("\n\n")[0]
    fields = re.findall(r"cdef (?:public|readonly) (?:long long|\w+) (.*)", body)
    return sorted(field for line in fields for field in line.split(", "))


def lone_packet(
    kind: Kind, source: tuple[int, int], target: tuple[int, int], nbytes: int, **fields: Any
) -> Packet:
    """The packet of a transfer of `nbytes` between two nodes, each given as (sip, node)."""
    return Packet(FabricTransfer(kind, *source, *target, total=nbytes, **fields), 0, nbytes)


def transfer_header(**changes: Any) -> TransferHeader:
    """A WRITE of 64 bytes from SIP 0 to address 0 of SIP 1, with other values for some fields."""
    values: dict[str, Any] = {
        "kind": PacketKind.WRITE,
        "source_sip": 0,
        "source_node": 7,
        "sip": 1,
        "node": 8,
        "address": 0,
        "tag": 1,
        "total": 64,
        "sent_ps": 5,
        "flow": None,
        "rows": None,
        "element": 0,
        "call": "",
    }
    return TransferHeader(**values | changes)


def packet_run(header: TransferHeader | None = None, **changes: Any) -> PacketRun:
    """One packet with all bytes of a transfer, its head at 9 ps, its tail at 10 ps."""
    total = 64 if header is None else header.total
    values: dict[str, Any] = {
        "number": 0,
        "header": header,
        "ends": True,
        "heads_ps": (9,),
        "tails_ps": (1,),
        "seqs": (0,),
        "begins": (0,),
        "sizes": (total,),
    }
    return PacketRun(**values | changes)


def run_message(run: PacketRun, payload: bytes = b"", *, source: int, target: int) -> Message:
    """The message of a run."""
    return Message(
        time_ps=run.heads_ps[0],
        source=source,
        target=target,
        seq=run.seqs[0],
        body=pack(run),
        payload=payload,
    )
