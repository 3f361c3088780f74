"""Network addresses of the processes of a run."""

import socket
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address

from runtime.core.errors import UsageError

_MOST_PORTS = 1 << 16
_DISCARD_PORT = 9
"""The port of a datagram socket that sends nothing; any would do (RFC 863)."""


@dataclass(frozen=True)
class Master:
    """The host and the port of the process of rank 0."""

    host: str
    port: int

    @property
    def address(self) -> str:
        """The numeric address of the host. Raises `UsageError` for an unknown name."""
        try:
            addresses = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise UsageError(
                f"the host {self.host!r} of the master has no address: {error.strerror}"
            ) from error
        return str(addresses[0][4][0])

    @property
    def is_loopback(self) -> bool:
        """Whether only processes of the same host can reach it."""
        return ip_address(self.address.partition("%")[0]).is_loopback

    def __str__(self) -> str:
        return f"{in_brackets(self.host)}:{self.port}"


def parse_master(text: str, source: str) -> Master:
    """HOST:PORT, where an IPv6 address is in brackets. Raises `UsageError` that names `source`."""
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or not port.isdecimal() or not 0 < int(port) < _MOST_PORTS:
        raise UsageError(f"{source}: expected HOST:PORT such as 10.0.0.1:29400, got {text!r}")
    if ":" in bare and bare == host:
        raise UsageError(f"{source}: an IPv6 address is in brackets: [{host}]:{port}")
    return Master(bare, int(port))


def source_address(address: str) -> str:
    """The address of this host from which packets to `address` are sent.

    Raises `UsageError` where there is no route.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends nothing, and chooses the route.
            probe.connect((address, _DISCARD_PORT))
        except OSError as error:
            raise UsageError(
                f"this host has no route to the master {address}: {error.strerror}; --bind names "
                "the address of this host"
            ) from error
        return str(probe.getsockname()[0])


def is_address_of_this_host(address: str) -> bool:
    """Whether a socket can be bound to `address` here."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((address, 0))
        return True
    return False


def in_brackets(host: str) -> str:
    """A host as part of an endpoint."""
    return f"[{host}]" if ":" in host else host
