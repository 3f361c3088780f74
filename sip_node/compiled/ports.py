"""A fabric as the loops over packets call it, interpreted; ports.pyx has the C version."""

from typing import Any


class Outlet:
    """Node `node` of a fabric, from which packets are sent."""

    __slots__ = ("_fabric", "_node")

    def __init__(self, fabric: Any, node: int) -> None:
        self._fabric, self._node = fabric, node

    def send(self, packet: Any, tail_ps: int) -> None:
        """Send a packet, whose last byte is here at `tail_ps`."""
        self._fabric.send(packet, self._node, tail_ps)
