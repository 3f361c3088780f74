"""Packets in C, as Python sees them."""

from typing import Any

from sip_node.compiled.packet_train import PacketTrain

class Packet:
    transfer: Any
    begin: int
    size: int
    last: bool
    entrance_ps: int
    space: object
    came_from: int | None
    train: PacketTrain | None
    link_ps: int
    longest_link: str
    def __init__(
        self,
        transfer: Any,
        begin: int,
        size: int,
        last: bool = True,
        entrance_ps: int = 0,
        space: object = None,
        came_from: int | None = None,
    ) -> None: ...
    @property
    def address(self) -> int: ...
    def queued(self, waited_ps: int, link: str) -> None: ...
    def enter(self, train: PacketTrain | None) -> None: ...
    def __copy__(self) -> Packet: ...
