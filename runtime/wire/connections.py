"""Decides who may connect to a socket of a run, and names those who may not: without any I/O.

ZeroMQ requests a decision in each handshake that carries credentials (ZAP, RFC 27). The monitor of
a socket (zmq_socket_monitor(3)) reports every other handshake that fails, and every end of a
connection. Its owner has both sockets, and passes on what they receive.

The report of a failed handshake has no connection, but ZeroMQ's thread sends it immediately before
the end of that connection. The end may come without: what is not ZeroMQ has no handshake. A process
whose credentials are refused by ZAP is sent the refusal first, so its connection ends later.
"""

from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from hmac import compare_digest

from runtime.wire.passwords import z85
from runtime.wire.refusals import Refusals, host_of
from runtime.wire.socket_file import admit, hold_back, unix_peer


class SocketEvent(IntEnum):
    """Events of a monitor that matter here: the numbers `ZMQ_EVENT_*` of zmq.h."""

    CONNECTED = 0x0001
    LISTENING = 0x0008
    ACCEPTED = 0x0020
    CLOSED = 0x0080
    DISCONNECTED = 0x0200
    STOPPED = 0x0400
    NO_DETAIL = 0x0800
    PROTOCOL = 0x2000
    AUTH = 0x4000


_CRYPTOGRAPHIC, _MECHANISM_MISMATCH = 0x11000001, 0x11000002
"""`ZMQ_PROTOCOL_ERROR_ZMTP_*` of zmq.h, the value of `SocketEvent.PROTOCOL`."""
_VERSION, _ADMITTED, _DENIED = b"1.0", b"200", b"400"
WRONG_PASSWORD, NO_PASSWORD = "a wrong password", "no password"
WRONG_CLIENT_KEY, WRONG_SERVER_KEY, NO_CURVE = (
    "a wrong client key",
    "a wrong server key",
    "no CURVE",
)
NOT_ZEROMQ = "not ZeroMQ"
_DENIED_KEPT = 256
"""Refusals of ZAP that wait for the ends of their connections; those of a flood are fewer."""


class Connections:
    """The connections to a socket with CURVE on tcp, and on ipc PLAIN or no mechanism.

    `is_password(name, password)` decides about PLAIN; `client_key` is the only public key of
    CURVE that is admitted, in Z85. `hold_back` and `admit` are those of `socket_file.py`.
    """

    def __init__(
        self,
        is_password: Callable[[bytes, bytes], bool],
        client_key: bytes,
        *,
        hold_back: Callable[[int], None] = hold_back,
        admit: Callable[[int, str], str] = admit,
    ) -> None:
        self._is_password, self._client_key = is_password, client_key
        self._hold_back, self._admit = hold_back, admit
        self.refusals = Refusals()
        self._open: dict[int, str] = {}
        # Connections that have sent a message, so their handshakes have succeeded.
        self._members: set[int] = set()
        # Ended without a failure, and without a message that has been read so far.
        self._ended: dict[int, str] = {}
        self._failure = ""
        self._denied: deque[tuple[str, str]] = deque(maxlen=_DENIED_KEPT)

    def decide(self, request: Sequence[bytes]) -> list[bytes]:
        """The reply to a ZAP request."""
        _, number, _, address, _, mechanism, *credentials = request
        reason = self._fault(mechanism, credentials)
        if reason:
            self._denied.append((unix_peer(address.decode(errors="replace")), reason))
        status = _DENIED if reason else _ADMITTED
        return [_VERSION, number, status, b"", b"", b""]

    def report(self, event: int, value: int, endpoint: str) -> None:
        """Take an event of the monitor as soon as possible."""
        match event:
            case SocketEvent.LISTENING:
                if endpoint.startswith("tcp://"):
                    self._hold_back(value)
            case SocketEvent.ACCEPTED:
                address = self._admit(value, endpoint)
                self._settle(value)
                self._open[value] = address
            case SocketEvent.PROTOCOL | SocketEvent.NO_DETAIL:
                self._failure = _failure(event, value, endpoint)
            case SocketEvent.DISCONNECTED:
                self._end(value)
            case _:
                pass

    def joined(self, file: int) -> bool:
        """The connection of an open file belongs to the run; returns whether it still exists."""
        if self._ended.pop(file, None) is not None:
            return False
        self._members.add(file)
        return file in self._open

    def settle(self) -> None:
        """Count every connection that has ended and has not joined; no message of it is unread."""
        for file in list(self._ended):
            self._settle(file)

    def _fault(self, mechanism: bytes, credentials: Sequence[bytes]) -> str:
        if mechanism == b"CURVE":
            # In constant time: the time of a refusal must not depend on the length of the part of a
            # guess that is right.
            is_peer = len(credentials) == 1 and compare_digest(
                z85(credentials[0]), self._client_key
            )
            return "" if is_peer else WRONG_CLIENT_KEY
        if mechanism == b"PLAIN":
            is_peer = len(credentials) == 2 and self._is_password(credentials[0], credentials[1])
            return "" if is_peer else WRONG_PASSWORD
        return NO_PASSWORD

    def _end(self, file: int) -> None:
        address, failure, self._failure = self._open.pop(file, ""), self._failure, ""
        if file in self._members:
            self._members.remove(file)
            return
        # ZeroMQ closes a connection that ZAP has refused without an event of a failure. One with
        # such an event is not to use up the refusal of another one of its host, which ends later.
        if not failure:
            failure, refused = self._refused_by_zap(address)
            address = address or refused
        if failure:
            self.refusals.add(failure, address)
        else:
            self._ended[file] = address

    def _settle(self, file: int) -> None:
        if file in self._ended:
            self.refusals.add(NOT_ZEROMQ, self._ended.pop(file))

    def _refused_by_zap(self, address: str) -> tuple[str, str]:
        """The reason of a refusal by ZAP of a process at that host, which is used up, and its
        address there; or empty texts.
        """
        host = host_of(address).strip("[]")
        for index, (refused, reason) in enumerate(self._denied):
            if not address or refused == host:
                del self._denied[index]
                return reason, refused
        return "", ""


def _failure(event: int, value: int, endpoint: str) -> str:
    if event == SocketEvent.PROTOCOL and value == _CRYPTOGRAPHIC:
        return WRONG_SERVER_KEY
    if event == SocketEvent.PROTOCOL and value != _MECHANISM_MISMATCH:
        return NOT_ZEROMQ
    # A peer with another mechanism closes the connection itself if it is faster. So does one that
    # sends nothing at all: both have shown no credentials.
    return NO_PASSWORD if endpoint.startswith("ipc://") else NO_CURVE
