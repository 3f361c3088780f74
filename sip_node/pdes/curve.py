"""CURVE on the tcp sockets of an LP: one key pair for all of a run, derived from its id."""

import zmq  # noqa: TID251 - sets options of sockets

from runtime.wire.passwords import Passwords
from runtime.wire.socket_file import HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS


class Curve:
    """The key pair of a run."""

    def __init__(self, passwords: Passwords) -> None:
        self._secret = passwords.curve_secret
        self.public = zmq.curve_public(self._secret)

    def serve(self, socket: zmq.Socket[bytes]) -> None:
        """Let `socket` accept only clients with the key, at endpoints that it binds from now on."""
        socket.curve_secretkey = self._secret
        socket.curve_server = True
        _send_heartbeats(socket)

    def join(self, socket: zmq.Socket[bytes], endpoint: str) -> None:
        """Let `socket` accept only a server with the key, when it connects to `endpoint` (tcp)."""
        socket.curve_secretkey, socket.curve_publickey = self._secret, self.public
        socket.curve_serverkey = self.public
        socket.ipv6 = is_ipv6(endpoint)
        _send_heartbeats(socket)


def is_ipv6(endpoint: str) -> bool:
    """Whether a tcp endpoint has a number of IPv6."""
    return endpoint.startswith("tcp://[")


def _send_heartbeats(socket: zmq.Socket[bytes]) -> None:
    socket.heartbeat_ivl = HEARTBEAT_MS
    socket.heartbeat_timeout = HEARTBEAT_TIMEOUT_MS
