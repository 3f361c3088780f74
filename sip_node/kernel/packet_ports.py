"""Ports and fabrics for texts, interpreted; packet_ports.pxd has the C version."""

from typing import Any, NamedTuple, Protocol


class Port(Protocol):
    """A FIFO server."""

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        """(start, tail) of a message."""
        ...


class SendingFabric(Protocol):
    """What packets enter the links by."""

    def send(self, packet: Any, origin: int, tail_ps: int) -> None:
        """Send a packet from a node."""
        ...


class PortService(NamedTuple):
    """When a packet begins to be served, and when its tail leaves."""

    start_ps: int
    tail_ps: int


def fifo_of(port: Port) -> None:
    """The port as `served` calls it in C."""


def served(fifo: None, port: Port, head_ps: int, tail_ps: int, nbytes: int) -> PortService:  # noqa: ARG001
    """Reserve a port for a packet."""
    return PortService(*port.reserve(head_ps, tail_ps, nbytes))


def hops_of(fabric: SendingFabric) -> None:
    """The fabric as `send` calls it in C."""


def send(hops: None, fabric: SendingFabric, packet: Any, origin: int, tail_ps: int) -> None:  # noqa: ARG001
    """Send a packet from a node of a fabric."""
    fabric.send(packet, origin, tail_ps)
