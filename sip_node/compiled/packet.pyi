"""Packets in C, as Python sees them."""

from typing import Any

class Packet:
    transfer: Any
    begin: int
    size: int
    last: bool
    entrance_ps: int
    space: object
    came_from: int | None
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
    def __copy__(self) -> Packet: ...
