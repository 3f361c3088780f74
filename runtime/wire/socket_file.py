"""State of a connection of ZeroMQ in the operating system, by the number of its open file.

ZeroMQ owns the file and may close it at any time; its number may then be used for another file.
"""

import ctypes
import os
import socket
from contextlib import suppress
from struct import Struct

_CREDENTIALS = Struct("=3i")
"""`struct ucred` of unix(7): process, user, group."""
_ESTABLISHED = 1
"""`TCP_ESTABLISHED`, the first byte of `struct tcp_info` of tcp(7)."""
_LOW_WATER_BYTES = 1 << 15
"""More than the first message of a handshake, or a request of HTTP."""
_ATTACH_FILTER, _DETACH_FILTER = 26, 27
"""`SO_ATTACH_FILTER` and `SO_DETACH_FILTER` of socket(7), which Python does not name."""
_INSTRUCTION, _PROGRAM = Struct("=HBBI"), Struct("@HP")
"""`struct sock_filter` and `struct sock_fprog` of Linux' packet filters (BPF)."""
_ZMTP_ONLY = b"".join(
    _INSTRUCTION.pack(*each)
    for each in (
        # The length of the header of TCP, in four-byte words, is the upper half of its byte 12.
        (0x30, 0, 0, 12),  # A = byte 12
        (0x54, 0, 0, 0xF0),  # A &= 0xf0
        (0x74, 0, 0, 2),  # A >>= 2
        (0x07, 0, 0, 0),  # X = A
        (0x80, 0, 0, 0),  # A = length of the packet
        (0x1D, 3, 0, 0),  # without data: accept
        (0x50, 0, 0, 0),  # A = first byte of the data
        (0x15, 1, 0, 0xFF),  # the signature of ZMTP: accept
        (0x25, 1, 0, 0x07),  # more than the flags of a frame of ZMTP: drop
        (0x06, 0, 0, 0xFFFFFFFF),  # accept
        (0x06, 0, 0, 0),  # drop
    )
)
CLOSED, SILENT = "closed", "no heartbeat for 3 s"
HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS = 1000, 3000
"""Heartbeats of every tcp connection. ZeroMQ's own thread sends them, also where an LP is busy."""


def duplicate(file: int) -> socket.socket | None:
    """A copy of the socket of an open file; None if that is none (any more)."""
    with suppress(OSError):
        copy = os.dup(file)
        try:
            return socket.socket(fileno=copy)
        except OSError:
            os.close(copy)
    return None


def hold_back(listener: int) -> None:
    """Let ZeroMQ read nothing from the connections of a tcp listener until `admit` is called.

    Otherwise the connection of a stranger may be closed before `admit` has read its address. Linux
    does not wait where one packet may fill the window of the receiver, as on loopback, and ZeroMQ
    reads what is there when it accepts a connection. So data that does not begin as ZMTP (RFC 23)
    does is dropped as if it were lost on its way: its sender repeats it after 0.2 s.
    """
    with suppress(OSError), _Borrowed(listener) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _LOW_WATER_BYTES)
        instructions = ctypes.create_string_buffer(_ZMTP_ONLY, len(_ZMTP_ONLY))
        program = _PROGRAM.pack(
            len(_ZMTP_ONLY) // _INSTRUCTION.size, ctypes.addressof(instructions)
        )
        connection.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)


def admit(file: int, endpoint: str) -> str:
    """Let ZeroMQ read from a connection accepted at `endpoint`, and return the address of its peer.

    It is `10.0.0.9:51122`, `[fd00::9]:51122`, or the process `pid 4711 (uid 1000)`; empty if the
    connection has ended.
    """
    with suppress(OSError), _Borrowed(file) as connection:
        # The number may have been used again, for another socket of this process.
        if endpoint.startswith("ipc://"):
            if connection.getsockname() == endpoint.removeprefix("ipc://"):
                return _process(connection)
        elif endpoint.endswith(f":{connection.getsockname()[1]}"):
            # First: `getpeername` fails if the peer has closed the connection already.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            address = _ip_address(connection)
            # There is none where the system could not attach it.
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, _DETACH_FILTER, 0)
            return address
    return ""


class _Borrowed:
    """The socket of an open file, which stays open."""

    def __init__(self, file: int) -> None:
        self._socket = socket.socket(fileno=file)

    def __enter__(self) -> socket.socket:
        return self._socket

    def __exit__(self, *_: object) -> None:
        self._socket.detach()


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
