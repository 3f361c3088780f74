"""Admits the peers of an LP to its socket, and notices when the connection to a peer ends.

A peer on the same host authenticates by the PLAIN mechanism of ZeroMQ: its number, and its password
for this LP. A peer on another host authenticates by CURVE, with the key of the run. The other end
of both mechanisms is a handler (ZAP, ZeroMQ RFC 27): ZeroMQ requests its decision in each
handshake. A connection without valid credentials is closed by ZeroMQ. Nothing of it reaches the LP:
no message is queued or decoded, so a stranger costs no memory, and no time of the simulation.

A monitor of the socket reports every connection that is closed. Peers stay connected to the end of
the run, so until then these are the connections of strangers (`runtime/wire/connections.py`).

A monitor of the socket to each peer on another host reports the end of that connection, which is
final: a frame may have been lost with it, and the peer, its host or the network with the frame.
"""

import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from hmac import compare_digest
from socket import socket as open_socket
from struct import Struct
from threading import Event, Thread
from typing import NamedTuple

import zmq  # noqa: TID251 - this module owns the sockets of the handler and of the monitors

from runtime.core.errors import ConnectionLost
from runtime.wire.connections import Connections, SocketEvent
from runtime.wire.control import Refused
from runtime.wire.passwords import Passwords
from runtime.wire.socket_file import duplicate, end_of

_EVENT = Struct("=Hi")
"""The first frame of a message of a monitor (zmq_socket_monitor): its event, and a value."""
_HANDLER = "inproc://zeromq.zap.01"
_OF_STRANGERS = (
    zmq.EVENT_LISTENING
    | zmq.EVENT_ACCEPTED
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_DISCONNECTED
)
_HANDSHAKE_FAILED = (
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)
_OF_A_PEER = zmq.EVENT_CONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_DISCONNECTED | _HANDSHAKE_FAILED
_READY_S = 1.0
_Socket = zmq.Socket[bytes]


class _Peer(NamedTuple):
    lp: int
    endpoint: str
    socket: _Socket
    monitor: _Socket


class Admission:
    """Decides who may connect to `socket` of an LP; constructed before the socket is bound.

    `client_key` is the public key of CURVE of the run. A thread decides, since the thread of the LP
    may compute for long.
    """

    def __init__(
        self,
        context: zmq.Context[_Socket],
        socket: _Socket,
        passwords: Passwords,
        client_key: bytes,
    ) -> None:
        self._passwords, self._socket = passwords, socket
        self.lp = -1
        """The number of the LP; set before it listens to peers of its host."""
        self._connections = Connections(self._is_password, client_key)
        self._events = socket.get_monitor_socket(_OF_STRANGERS)
        self._handler = context.socket(zmq.REP)
        self._handler.bind(_HANDLER)
        self._lost: dict[int, ConnectionLost] = {}
        self.lost_file = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """An open file that can be read once a connection has been lost."""
        self._peers: list[_Peer] = []
        self._new: deque[_Peer] = deque()
        self._files: dict[int, open_socket] = {}
        self._listening = Event()
        self._closing = False
        self._notice = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = Thread(target=self._serve, name="admission", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> Mapping[int, ConnectionLost]:
        """The peers to which the connection has ended, or could not be made."""
        return self._lost

    def listening(self) -> None:
        """Return when the socket is ready for connections to the endpoint bound just now."""
        self._listening.wait(_READY_S)
        self._listening.clear()

    def follow(self, peer: int, endpoint: str, socket: _Socket) -> None:
        """Notice the end of the connection of `socket` to LP `peer`; call it before it connects."""
        # The thread takes over the monitor: a socket of ZeroMQ belongs to one thread at a time.
        followed = _Peer(peer, endpoint, socket, socket.get_monitor_socket(_OF_A_PEER))
        self._peers.append(followed)
        self._new.append(followed)
        os.eventfd_write(self._notice, 1)

    def refused(self) -> tuple[Refused, ...]:
        """The connections of strangers that were refused, by reason.

        To be called while all peers are connected.
        """
        return self._connections.refusals.refused

    def close(self) -> None:
        """Stop admitting; call it before the socket and its context are closed."""
        if self._closing:
            return
        # Monitors first: ZeroMQ's own thread would wait for a reader that has gone.
        for socket in (self._socket, *(peer.socket for peer in self._peers)):
            socket.disable_monitor()
        self._closing = True
        os.eventfd_write(self._notice, 1)
        # The thread closes its sockets: libzmq aborts if another thread does.
        self._thread.join()
        for file in (self._notice, self.lost_file):
            os.close(file)

    def _serve(self) -> None:
        poller = zmq.Poller()
        for source in (self._handler, self._events, self._notice):
            poller.register(source, zmq.POLLIN)
        followed: dict[object, _Peer] = {}
        while not self._closing:
            for source, _ in poller.poll():
                if source is self._handler:
                    request = self._handler.recv_multipart()
                    self._handler.send_multipart(self._connections.decide(request))
                elif source is self._events:
                    self._report()
                elif source in followed:
                    self._report_peer(followed[source])
                else:
                    followed |= self._followed(poller)
        for socket in (self._handler, self._events, *(peer.monitor for peer in self._peers)):
            socket.close()
        for file in self._files.values():
            file.close()

    def _followed(self, poller: zmq.Poller) -> dict[object, _Peer]:
        """The peers since the last call, by their monitors."""
        os.eventfd_read(self._notice)
        peers: dict[object, _Peer] = {}
        while self._new:
            peer = self._new.popleft()
            peers[peer.monitor] = peer
            poller.register(peer.monitor, zmq.POLLIN)
        return peers

    def _is_password(self, name: bytes, password: bytes) -> bool:
        # A name comes from a stranger: its length is bounded before it becomes a number.
        if self.lp < 0 or not name.isdigit() or len(name) > 5:
            return False
        # In a time that does not depend on the first wrong byte, which would reveal the others one
        # by one.
        return compare_digest(self._passwords.of(int(name), self.lp), password)

    def _report(self) -> None:
        """Pass on an event of the socket."""
        event, value, endpoint = _received(self._events)
        self._connections.report(event, value, endpoint)
        # A peer does not disconnect before the end of the run.
        self._connections.settle()
        if event == SocketEvent.LISTENING:
            self._listening.set()

    def _report_peer(self, peer: _Peer) -> None:
        """Note what has become of the connection to a peer."""
        event, value, _ = _received(peer.monitor)
        match event:
            case SocketEvent.CONNECTED:
                copy = duplicate(value)
                if copy is not None:
                    self._files[peer.lp] = copy
            case SocketEvent.CLOSED:
                self._lose(peer, "cannot connect")
            case SocketEvent.DISCONNECTED:
                # ZeroMQ's copy of the file is closed: until this one is, so is not the connection.
                copy = self._files.pop(peer.lp, None)
                self._lose(peer, end_of(copy))
                if copy is not None:
                    copy.close()
            case SocketEvent.STOPPED:
                pass
            case SocketEvent.NO_DETAIL:
                # By a process of another run, for instance, since it cannot read the handshake.
                self._lose(peer, "closed in the handshake")
            case _:
                self._lose(peer, "it does not have the key of this run")

    def _lose(self, peer: _Peer, reason: str) -> None:
        # The first reason counts: the end of the connection follows a failed handshake.
        self._lost.setdefault(peer.lp, ConnectionLost(peer.lp, peer.endpoint, reason))
        with suppress(BlockingIOError):
            os.eventfd_write(self.lost_file, 1)


def _received(monitor: _Socket) -> tuple[int, int, str]:
    """An event of a monitor, its value and the endpoint."""
    first, endpoint = monitor.recv_multipart()
    event, value = _EVENT.unpack(first)
    return event, value, endpoint.decode(errors="replace")
