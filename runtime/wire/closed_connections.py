"""The peers of tcp connections that have been closed a moment ago, by the table of the kernel.

A stranger's connection may be closed before anyone has read its address. The side that closes first
keeps the connection in its table for about a minute (TIME_WAIT), so that late packets are not taken
for another connection.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

_TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
_CLOSED = {"04", "05", "06", "07", "09", "0B"}
"""FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSE, LAST_ACK, CLOSING of `tcp_states.h`."""
_WORD_DIGITS = 8


def closed_peers(endpoint: str) -> list[str]:
    """The addresses of the peers of closed connections to a tcp endpoint of this host.

    Empty where the kernel has no such table.
    """
    port = int(endpoint.rpartition(":")[2])
    own = endpoint.removeprefix("tcp://")
    return list(dict.fromkeys(_peers(own, port)))


def _peers(own: str, port: int) -> Iterator[str]:
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                _, local, remote, state, *_ = line.split()
                if state not in _CLOSED:
                    continue
                if int(local.rpartition(":")[2], 16) == port:
                    yield _text(remote)
                # The other end, if that is on this host and was closed first.
                elif int(remote.rpartition(":")[2], 16) == port and _text(remote) == own:
                    yield _text(local)


def _text(address: str) -> str:
    """`0100007F:1F90` as `127.0.0.1:8080`: words of four bytes in the order of the processor."""
    digits, _, port = address.rpartition(":")
    words = [digits[at : at + _WORD_DIGITS] for at in range(0, len(digits), _WORD_DIGITS)]
    packed = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    host = ip_address(packed)
    if host.version == 4:
        return f"{host}:{int(port, 16)}"
    mapped = host.ipv4_mapped
    return f"{mapped}:{int(port, 16)}" if mapped else f"[{host}]:{int(port, 16)}"
