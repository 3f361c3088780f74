"""The control channel of an LP: its messages to the coordinator, and those it waits for.

Every wait is bounded: the lifeline detects a coordinator that has ended, `PATIENCE_S` a coordinator
that hangs.
"""

from os import getpid, times
from struct import Struct
from threading import Event
from typing import TypeVar

import zmq  # noqa: TID251 - this module owns the control socket

from runtime.core.errors import ProtocolError, RunAborted
from runtime.core.wallclock import now_s
from runtime.wire.codec import decode_from_coordinator, encode_control
from runtime.wire.control import (
    Abort,
    Busy,
    Bye,
    FromCoordinator,
    FromLp,
    Hello,
    LpHost,
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
from sip_node.lifeline import Ending
from sip_node.pdes.curve import Curve

PATIENCE_S = 600.0
"""Longest wait for the next message of the coordinator.

The coordinator's own time limits are shorter, and their errors have a better reason.
"""
STATUS_PERIOD_S = 0.25
STATUS_SHARE = 0.02
"""The most processor time for reports of the status, as a share of the wall time."""
_EVENT = Struct("=Hi")
"""The first frame of a message of a monitor (zmq_socket_monitor): its event, and a value."""
_LAST_MESSAGE_S = 0.3
"""Time in which this process reads the last message of a connection that has ended."""
_LINGER_MS = 2000
_HEARTBEAT_MS = 1000
_RECONNECT_MS = 5
_COORDINATOR = "the coordinator"
JOIN_S = 120.0
"""Longest time until the coordinator of a run that a launcher has started can be reached."""

_Expected = TypeVar("_Expected", Peers, Start, Bye)


class Control:
    """A DEALER socket to the coordinator at `endpoint`, for LP `lp` of run `run_id`.

    An LP that its coordinator did not start ends by `ending` when the connection is lost. An LP
    that a launcher has started has `join_s` to reach its coordinator, and has a new number after
    `hello`. Every method that receives raises `RunAborted` with the coordinator's reason.
    """

    def __init__(
        self,
        endpoint: str,
        run_id: str,
        lp: int,
        ending: Ending | None = None,
        *,
        patience_s: float = PATIENCE_S,
        join_s: float | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._run_id = run_id
        self._lp = lp
        self._patience_s = patience_s
        self._status_due_s = float("-inf")
        self._joiner = PieceJoiner(decode_from_coordinator)
        self._context = zmq.Context()
        self.socket = self._connected_by(run_id)
        # Unlimited: an LP must not wait for the coordinator to read its trace.
        self.socket.set(zmq.SNDHWM, 0)
        # A process may start before its coordinator has bound the endpoint.
        self.socket.set(zmq.RECONNECT_IVL, _RECONNECT_MS)
        # A child follows its parent process instead, which also works when the socket hangs.
        self._connection = None
        if coordinator_pid() is None or join_s is not None:
            ending = ending or Ending()
            self._connection = _Connection(self.socket, endpoint, ending, join_s)
        self.socket.connect(endpoint)

    def hello(
        self,
        data_endpoint: str,
        code: tuple[ModuleCode, ...] = (),
        host: LpHost | None = None,
        command: str = "",
    ) -> Peers:
        """Join the run; returns when every LP has joined.

        Peers of other hosts reach this LP at `data_endpoint`; `code` has the modules that it has
        imported. `host` and `command` are those of a process that a launcher has started.
        """
        self.send(
            Hello(
                protocol=PROTOCOL_VERSION,
                run_id=self._run_id,
                lp=self._lp,
                pid=getpid(),
                endpoint=data_endpoint,
                code=code,
                host=host,
                command=command,
            )
        )
        peers = self._expect(Peers)
        self._lp = peers.lp
        return peers

    def ready(self, config_hash: str, code: tuple[ModuleCode, ...] = ()) -> None:
        """Report that the chips are built and the channels connected."""
        self.send(Ready(self._lp, config_hash, code))

    def wait_start(self) -> None:
        """Return when every LP is ready."""
        self._expect(Start)

    def status_is_due(self) -> bool:
        """Whether a status is due, four times a second at most. Cheap enough for every round."""
        return now_s() >= self._status_due_s

    def report_status(self, status: Status, used_s: float = 0.0) -> None:
        """Send the status of this LP, to collect which took `used_s` of processor time."""
        # An LP may have thousands of PEs that wait.
        self._status_due_s = now_s() + max(STATUS_PERIOD_S, used_s / STATUS_SHARE)
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
        socket = self._connected_by(self._run_id)
        socket.connect(self._endpoint)
        used = times()
        message = Busy(
            lp=self._lp,
            run_id=self._run_id,
            stretch_s=stretch_s,
            imports=imports,
            ranks=ranks,
            used_s=used.user + used.system,
            used_by_children_s=used.children_user + used.children_system,
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

    def _connected_by(self, run_id: str) -> zmq.Socket[bytes]:
        """A socket for the endpoint."""
        socket = self._context.socket(zmq.DEALER)
        # After a failure the process ends soon; its last message must still leave.
        socket.set(zmq.LINGER, _LINGER_MS)
        if self._endpoint.startswith("tcp://"):
            Curve(Passwords(run_id)).join(socket, self._endpoint)
        return socket

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
    """The connection of a control socket to `endpoint`: this process ends when it is lost.

    It is lost when the peer closes it, and when its heartbeats stop. Within `join_s`, if that is
    given, it must be made.
    """

    def __init__(
        self, socket: zmq.Socket[bytes], endpoint: str, ending: Ending, join_s: float | None
    ) -> None:
        # A coordinator that is killed or unplugged sends no end of connection.
        socket.set(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        socket.set(zmq.HEARTBEAT_TIMEOUT, 3 * _HEARTBEAT_MS)
        self._socket, self._endpoint = socket, endpoint
        self._deadline_s = None if join_s is None else now_s() + join_s
        self._is_made = False
        self._events = socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED | zmq.EVENT_MONITOR_STOPPED
        )
        self._released = Event()
        self._lifeline = lifeline.follow(self._lost, ending, self._released)

    def release(self) -> None:
        """Stop following the connection."""
        if self._released.is_set():
            return
        # Set first: the lifeline must not take the end of the monitor for a lost connection.
        self._released.set()
        self._socket.disable_monitor()
        self._lifeline.join()
        self._events.close()

    def _lost(self) -> str:
        """Why the connection is lost; empty if it is not."""
        if not self._events.poll(200):
            if self._is_made or self._deadline_s is None or now_s() < self._deadline_s:
                return ""
            return (
                f"there is no coordinator at {self._endpoint}: is rank 0 started, and is this the "
                "address of its host?"
            )
        # `zmq.utils.monitor` has a decoder, but loads asyncio: a fifteenth of the start of an LP.
        event, _ = _EVENT.unpack(self._events.recv_multipart()[0])
        if event == zmq.EVENT_DISCONNECTED and self._released.wait(_LAST_MESSAGE_S):
            return ""
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._is_made = True
        elif event == zmq.EVENT_DISCONNECTED and self._is_made:
            return (
                f"the connection to the coordinator at {self._endpoint} is lost: it has ended, or "
                "sends no heartbeats"
            )
        elif event == zmq.EVENT_DISCONNECTED:
            return f"the process at {self._endpoint} refuses this one: has it another secret?"
        return ""
