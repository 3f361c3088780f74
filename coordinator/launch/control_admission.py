"""Admits processes to the coordinator's socket, and notices when the connection of an LP ends.

At an ipc endpoint there is no handshake that could fail: the private directory of the run keeps
other users away, and a process of the user without a valid Hello is refused by the rendezvous. At a
tcp endpoint a process needs the CURVE key of the run. ZeroMQ requests the decision from a handler
(ZAP, RFC 27), and a monitor of the socket reports what else fails, and the ends of connections.

All of it happens in the thread of the coordinator, between two messages.
"""

from math import ceil
from socket import socket as open_socket
from struct import Struct
from typing import NamedTuple

import zmq  # noqa: TID251 - this module owns the sockets of the handler and of the monitor

from runtime.core.wallclock import now_s
from runtime.wire.connections import Connections, SocketEvent
from runtime.wire.control import Refused
from runtime.wire.passwords import Passwords
from runtime.wire.socket_file import (
    HEARTBEAT_MS,
    HEARTBEAT_TIMEOUT_MS,
    duplicate,
    end_of,
)

_EVENT = Struct("=Hi")
"""The first frame of a message of a monitor (zmq_socket_monitor): its event, and a value."""
_HANDLER = "inproc://zeromq.zap.01"
_EVENTS = (
    zmq.EVENT_LISTENING
    | zmq.EVENT_ACCEPTED
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_DISCONNECTED
)
_Socket = zmq.Socket[bytes]


class _Joined(NamedTuple):
    """The connection of a process that has joined as `rank`, with a copy of its open file."""

    rank: int
    file: open_socket | None


class ControlAdmission:
    """Decides who may connect to `socket` of the coordinator; constructed before it is bound."""

    def __init__(self, context: zmq.Context[_Socket], socket: _Socket, run_id: str) -> None:
        self._socket = socket
        self._secret = Passwords(run_id).curve_secret
        self._connections = Connections(_no_password, zmq.curve_public(self._secret))
        self._members: dict[int, _Joined] = {}
        self.lost: dict[int, str] = {}
        """The ranks whose connections have ended, with the reason."""
        self._events = socket.get_monitor_socket(_EVENTS)
        self._handler = context.socket(zmq.REP)
        self._handler.bind(_HANDLER)
        self._poller = zmq.Poller()
        for source in (socket, self._handler, self._events):
            self._poller.register(source, zmq.POLLIN)

    @property
    def refused(self) -> tuple[Refused, ...]:
        """The connections and messages of strangers that were refused, by reason."""
        return self._connections.refusals.refused

    def encrypt(self, endpoint: str) -> None:
        """Require the key of the run at `endpoint`, which is bound next, if it is of tcp."""
        # Options are those of the endpoints that are bound from now on.
        is_tcp = endpoint.startswith("tcp://")
        if is_tcp:
            self._socket.curve_secretkey = self._secret
        self._socket.curve_server = is_tcp
        self._socket.ipv6 = endpoint.startswith("tcp://[")
        self._socket.heartbeat_ivl = HEARTBEAT_MS if is_tcp else 0
        self._socket.heartbeat_timeout = HEARTBEAT_TIMEOUT_MS

    def update(self) -> None:
        """Take the events so far, such as that of an endpoint which has been bound just now."""
        while self._events.poll(0):
            self._report()

    def wait(self, timeout_s: float) -> bool:
        """Admit and refuse until a message arrives; returns whether there is one."""
        end_s = now_s() + timeout_s
        while not int(self._socket.get(zmq.EVENTS)) & zmq.POLLIN:
            # The messages of every connection that has ended have been read.
            self._connections.settle()
            ready = self._poller.poll(max(0, ceil((end_s - now_s()) * 1000)))
            if not ready:
                return False
            for source, _ in ready:
                if source is self._handler:
                    request = self._handler.recv_multipart()
                    self._handler.send_multipart(self._connections.decide(request))
                elif source is self._events:
                    self._report()
        return True

    def refuse(self, reason: str, address: str) -> None:
        """Count a message that is refused."""
        self._connections.refusals.add(reason, address)

    def known(self, file: int) -> None:
        """A message has come by the connection with an open file: its handshake has succeeded."""
        self._connections.joined(file)

    def joined(self, rank: int, file: int) -> None:
        """The process of `rank` has joined by the connection with an open file."""
        # ZeroMQ reports an end before it closes the file, whose number may then be used again.
        self.update()
        if self._connections.joined(file):
            self._members[file] = _Joined(rank, duplicate(file))
        else:
            self.lost.setdefault(rank, end_of(None))

    def close(self) -> None:
        """Stop admitting, before the socket and its context are closed."""
        self._socket.disable_monitor()
        for socket in (self._handler, self._events):
            socket.close()
        for member in self._members.values():
            if member.file is not None:
                member.file.close()

    def _report(self) -> None:
        first, name = self._events.recv_multipart()
        event, value = _EVENT.unpack(first)
        endpoint = name.decode(errors="replace")
        self._connections.report(event, value, endpoint)
        if event == SocketEvent.DISCONNECTED and value in self._members:
            rank, file = self._members.pop(value)
            self.lost.setdefault(rank, end_of(file))
            # Until this copy is closed, the connection is not, although ZeroMQ has closed its own.
            if file is not None:
                file.close()


def _no_password(_name: bytes, _password: bytes) -> bool:
    return False
