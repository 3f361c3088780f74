"""The control channel of an LP: its messages to the coordinator, and those it waits for.

Every wait is bounded: the lifeline detects a coordinator that has ended, `PATIENCE_S` a coordinator
that hangs.
"""

from os import getpid
from struct import Struct
from threading import Event
from typing import TypeVar

import zmq  # noqa: TID251 - this module owns the control socket

from runtime.core.errors import ConfigError, ProtocolError, RunAborted
from runtime.core.wallclock import now_s
from runtime.wire.codec import decode_from_coordinator, encode_control
from runtime.wire.control import (
    Abort,
    Busy,
    Bye,
    FromCoordinator,
    FromLp,
    Hello,
    ModuleCode,
    Peers,
    RankActivity,
    Ready,
    Start,
    Status,
)
from runtime.wire.environment import coordinator_pid
from runtime.wire.fields import PROTOCOL_VERSION
from runtime.wire.passwords import Passwords
from runtime.wire.pieces import PieceJoiner, encoded_messages
from sip_node import lifeline
from sip_node.pdes.curve import Curve

PATIENCE_S = 600.0
"""Longest wait for the next message of the coordinator.

The coordinator's own time limits are shorter, and their errors have a better reason.
"""
STATUS_PERIOD_S = 0.25
_EVENT = Struct("=Hi")
"""The first frame of a message of a monitor (zmq_socket_monitor): its event, and a value."""
_LINGER_MS = 2000
_HEARTBEAT_MS = 1000
_RECONNECT_MS = 5
_COORDINATOR = "the coordinator"
_LOCAL = ("ipc://", "inproc://", "tcp://127.0.0.1:", "tcp://localhost:", "tcp://[::1]:")

_Expected = TypeVar("_Expected", Peers, Start, Bye)


class Control:
    """A DEALER socket to the coordinator at `endpoint`, for LP `lp` of run `run_id`.

    An LP that its coordinator did not start ends when the connection is lost. Raises `ConfigError`
    for an endpoint beyond loopback; every method that receives raises `RunAborted` with the
    coordinator's reason.
    """

    def __init__(self, endpoint: str, run_id: str, lp: int, patience_s: float = PATIENCE_S) -> None:
        if not endpoint.startswith(_LOCAL):
            raise ConfigError(
                "--connect", "", f"{endpoint!r} leaves this host, and connections are not encrypted"
            )
        self._endpoint = endpoint
        self._run_id = run_id
        self._lp = lp
        self._patience_s = patience_s
        self._reported_s = float("-inf")
        self._joiner = PieceJoiner(decode_from_coordinator)
        self._context = zmq.Context()
        self.socket = self._context.socket(zmq.DEALER)
        # After a failure the process ends soon; its last message must still leave.
        self.socket.set(zmq.LINGER, _LINGER_MS)
        # Unlimited: an LP must not wait for the coordinator to read its trace.
        self.socket.set(zmq.SNDHWM, 0)
        # A process may start before its coordinator has bound the endpoint.
        self.socket.set(zmq.RECONNECT_IVL, _RECONNECT_MS)
        # A child follows its parent process instead, which also works when the socket hangs.
        self._connection = None if coordinator_pid() is not None else _Connection(self.socket)
        self._encrypt(self.socket)
        self.socket.connect(endpoint)

    def hello(self, data_endpoint: str, code: tuple[ModuleCode, ...] = ()) -> Peers:
        """Join the run; returns when every LP has joined.

        Peers reach this LP at `data_endpoint`; `code` has the modules that it has imported.
        """
        self.send(
            Hello(
                protocol=PROTOCOL_VERSION,
                run_id=self._run_id,
                lp=self._lp,
                pid=getpid(),
                endpoint=data_endpoint,
                code=code,
            )
        )
        return self._expect(Peers)

    def ready(self, config_hash: str, code: tuple[ModuleCode, ...] = ()) -> None:
        """Report that the chips are built and the channels connected."""
        self.send(Ready(self._lp, config_hash, code))

    def wait_start(self) -> None:
        """Return when every LP is ready."""
        self._expect(Start)

    def status_is_due(self) -> bool:
        """Whether a status is due, four times a second at most. Cheap enough for every round."""
        return now_s() - self._reported_s >= STATUS_PERIOD_S

    def report_status(self, status: Status) -> None:
        """Send the status of this LP."""
        self._reported_s = now_s()
        self.send(status)

    def check(self) -> None:
        """Take a message of the coordinator, if any: during a run only an abort may come."""
        # This runs once a round, and reading the events is cheaper than a receive that fails.
        if int(self.socket.get(zmq.EVENTS)) & zmq.POLLIN:
            message = self._receive()
            if message is not None:
                raise ProtocolError(_COORDINATOR, f"{type(message).__name__} during a run")

    def send(self, message: FromLp) -> None:
        """Send a message; never blocks. Raises `MessageSizeError` for one that is too long."""
        for data in encoded_messages(self._lp, message):
            self.socket.send(data)

    def send_busy(
        self, stretch_s: float, ranks: tuple[RankActivity, ...], *, imports: bool
    ) -> None:
        """Report a program that computes. The only method for another thread than the LP's."""
        # A socket belongs to one thread.
        socket = self._context.socket(zmq.DEALER)
        socket.set(zmq.LINGER, _LINGER_MS)
        self._encrypt(socket)
        socket.connect(self._endpoint)
        message = Busy(
            lp=self._lp, run_id=self._run_id, stretch_s=stretch_s, imports=imports, ranks=ranks
        )
        socket.send(encode_control(message))
        socket.close()

    def finish(self) -> None:
        """Wait for the coordinator's `Bye` after `Done`: it has received everything."""
        self._expect(Bye)

    def close(self) -> None:
        """Close the socket; what was sent is delivered within two seconds or dropped."""
        if self._connection is not None:
            self._connection.release()
        self.socket.close()
        self._context.term()

    def _encrypt(self, socket: zmq.Socket[bytes]) -> None:
        if self._endpoint.startswith("tcp://"):
            Curve(Passwords(self._run_id)).join(socket, self._endpoint)

    def _expect(self, kind: type[_Expected]) -> _Expected:
        message = None
        while message is None:
            if not self.socket.poll(round(self._patience_s * 1000)):
                raise RunAborted(
                    f"the coordinator did not send {kind.__name__} within {self._patience_s:g} s"
                )
            message = self._receive()
        if not isinstance(message, kind):
            raise ProtocolError(
                _COORDINATOR, f"{type(message).__name__} where {kind.__name__} is due"
            )
        return message

    def _receive(self) -> FromCoordinator | None:
        """The next message; None after a piece of one."""
        piece = decode_from_coordinator(self.socket.recv(), _COORDINATOR)
        message = self._joiner.joined(piece, _COORDINATOR)
        if self._connection is not None and isinstance(message, Abort | Bye):
            # The coordinator closes the connection after this message, and that must not end this
            # process before its own cleanup.
            self._connection.release()
        if isinstance(message, Abort):
            raise RunAborted(message.reason)
        return message


class _Connection:
    """The connection of a control socket: this process ends when it is lost.

    It is lost when the peer closes it, and when its heartbeats stop.
    """

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        # A coordinator that is killed or unplugged sends no end of connection.
        socket.set(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        socket.set(zmq.HEARTBEAT_TIMEOUT, 3 * _HEARTBEAT_MS)
        self._socket = socket
        self._events = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_MONITOR_STOPPED)
        self._released = Event()
        self._lifeline = lifeline.follow(self._lost, self._released)

    def release(self) -> None:
        """Stop following the connection."""
        if self._released.is_set():
            return
        # Set first: the lifeline must not take the end of the monitor for a lost connection.
        self._released.set()
        self._socket.disable_monitor()
        self._lifeline.join()
        self._events.close()

    def _lost(self) -> bool:
        if not self._events.poll(200):
            return False
        # `zmq.utils.monitor` has a decoder, but loads asyncio: a fifteenth of the start of an LP.
        event, _ = _EVENT.unpack(self._events.recv_multipart()[0])
        return event == zmq.EVENT_DISCONNECTED
