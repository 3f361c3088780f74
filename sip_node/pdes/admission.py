"""Admits the peers of an LP to its socket, before any of their messages is read.

A peer authenticates by the PLAIN mechanism of ZeroMQ: its number, and its password for this LP. The
other end of that mechanism is a handler (ZAP, ZeroMQ RFC 27): ZeroMQ requests its decision in each
handshake. A connection without a valid password is closed by ZeroMQ. Nothing of it reaches the LP:
no message is queued or decoded, so a stranger costs no memory, and no time of the simulation.

A monitor of the socket reports every connection that is closed. Peers stay connected to the end of
the run, so until then these are the connections of strangers; they are counted by reason.
"""

from hmac import compare_digest
from struct import Struct
from threading import Thread

import zmq  # noqa: TID251 - this module owns the sockets of the handler and of the monitor

from runtime.wire.passwords import Passwords

_EVENT = Struct("=Hi")
"""The first frame of a message of a monitor (zmq_socket_monitor): its event, and a value."""
_HANDLER = "inproc://zeromq.zap.01"
_VERSION, _ADMITTED, _DENIED = b"1.0", b"200", b"400"
_WRONG_PASSWORD, _NO_PASSWORD = "a wrong password", "no password"
_EVENTS = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_DISCONNECTED | zmq.EVENT_MONITOR_STOPPED


class Admission:
    """Decides who may connect to `socket` of LP `lp`; constructed before the socket is bound.

    A thread decides, since the thread of the LP may compute for long.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        socket: zmq.Socket[bytes],
        lp: int,
        passwords: Passwords,
    ) -> None:
        self._lp, self._passwords, self._socket = lp, passwords, socket
        self._wrong = self._closed = 0
        socket.plain_server = True
        self._events = socket.get_monitor_socket(_EVENTS)
        self._handler = context.socket(zmq.REP)
        self._handler.bind(_HANDLER)
        self._thread = Thread(target=self._serve, name="admission", daemon=True)
        self._thread.start()

    def refused(self) -> dict[str, int]:
        """How many connections of strangers were refused, by reason.

        To be called while all peers are connected.
        """
        # A process that sends nothing, or nothing of ZeroMQ, has no handshake that could fail: only
        # the end of every connection is certain.
        wrong, closed = self._wrong, self._closed
        counts = {_WRONG_PASSWORD: wrong, _NO_PASSWORD: max(0, closed - wrong)}
        return {reason: times for reason, times in counts.items() if times}

    def close(self) -> None:
        """Stop admitting; call it before the socket and its context are closed."""
        # The monitor reports its own end, which ends the thread.
        self._socket.disable_monitor()
        self._thread.join()

    def _serve(self) -> None:
        poller = zmq.Poller()
        for socket in (self._handler, self._events):
            poller.register(socket, zmq.POLLIN)
        is_open = True
        while is_open:
            for socket, _ in poller.poll():
                if socket is self._handler:
                    self._decide()
                else:
                    is_open = self._count()
        self._handler.close()
        self._events.close()

    def _decide(self) -> None:
        _, request, _, _, _, _, *credentials = self._handler.recv_multipart()
        status = _ADMITTED if self._is_peer(credentials) else _DENIED
        self._handler.send_multipart([_VERSION, request, status, b"", b"", b""])

    def _is_peer(self, credentials: list[bytes]) -> bool:
        if len(credentials) != 2 or not credentials[0].isdigit() or len(credentials[0]) > 5:
            return False
        password = self._passwords.of(int(credentials[0]), self._lp)
        return compare_digest(password, credentials[1])

    def _count(self) -> bool:
        """Count an event of the monitor; False for its last one."""
        event, _ = _EVENT.unpack(self._events.recv_multipart()[0])
        if event == zmq.EVENT_DISCONNECTED:
            self._closed += 1
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self._wrong += 1
        return event != zmq.EVENT_MONITOR_STOPPED
