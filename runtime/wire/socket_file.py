"""What the kernel reports about a connection of ZeroMQ, by the number of its open file.

ZeroMQ owns the file and may close it at any time, so it is read through a copy, and never from a
file that is no connection of the socket in question.
"""

import os
import socket
from contextlib import suppress
from struct import Struct

_CREDENTIALS = Struct("=3i")
"""`struct ucred` of unix(7): process, user, group."""
_ESTABLISHED = 1
"""`TCP_ESTABLISHED`, the first byte of `struct tcp_info` of tcp(7)."""
CLOSED, SILENT = "closed", "no heartbeat for 3 s"
HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS = 1000, 3000
"""Of every tcp connection of a run. ZeroMQ's own thread sends them: a busy LP is no false alarm."""


def duplicate(file: int) -> socket.socket | None:
    """The socket of an open file; None if that is none (any more). The caller closes it."""
    with suppress(OSError):
        copy = os.dup(file)
        try:
            return socket.socket(fileno=copy)
        except OSError:
            os.close(copy)
    return None


def peer_address(file: int, endpoint: str) -> str:
    """The address of the peer of a connection accepted at `endpoint`; empty if that has ended.

    It is `10.0.0.9:51122`, `[fd00::9]:51122`, or the process `pid 4711 (uid 1000)`.
    """
    connection = duplicate(file)
    if connection is None:
        return ""
    with connection, suppress(OSError):
        # The number may have been reused for another socket of this process.
        if endpoint.startswith("ipc://"):
            if connection.getsockname() == endpoint.removeprefix("ipc://"):
                return _process(connection)
        elif endpoint.endswith(f":{connection.getsockname()[1]}"):
            return _ip_address(connection)
    return ""


def unix_peer(peer: str) -> str:
    """The same address of a process from ZeroMQ's `Peer-Address`, `<host>:<uid>:<gid>:<pid>`."""
    _, *numbers = peer.rsplit(":", 3)
    is_process = len(numbers) == 3 and all(number.isdigit() for number in numbers)
    return f"pid {numbers[2]} (uid {numbers[0]})" if is_process else peer


def end_of(connection: socket.socket | None) -> str:
    """Why a connection has ended that ZeroMQ has closed: `CLOSED` by the peer, or `SILENT`."""
    with suppress(OSError, AttributeError):
        if connection is not None and connection.family != socket.AF_UNIX:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
            # The peer's end of the connection has not been closed, so ZeroMQ gave it up.
            return SILENT if info[0] == _ESTABLISHED else CLOSED
    return CLOSED


def _process(connection: socket.socket) -> str:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(credentials)
    return f"pid {pid} (uid {uid})"


def _ip_address(connection: socket.socket) -> str:
    host, port = connection.getpeername()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
