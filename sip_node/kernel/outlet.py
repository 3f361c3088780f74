"""A node of the fabric, from which packets are sent."""

from typing import Any


class Outlet:
    """Node `node` of `fabric`, which may be one with credits, or of a class of the user."""

    __slots__ = ("_fabric", "_node")

    def __init__(self, fabric: Any, node: int) -> None:
        self._fabric, self._node = fabric, node

    def send(self, packet: Any, tail_ps: int) -> None:
        """Send `packet` from the node now; its tail is there at `tail_ps`."""
        self._fabric.send(packet, self._node, tail_ps)
