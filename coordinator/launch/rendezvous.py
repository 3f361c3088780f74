"""The rendezvous of the LPs of a run: the coordinator's end of the control channel.

It is a ROUTER socket in the private directory of the run, and for LPs of other hosts at a tcp
endpoint as well, with CURVE (`control_admission.py`); a peer is identified by its `Hello`. A peer
without a valid `Hello` is a stranger: it receives the reason of the refusal, and the run goes on
without it. An admitted LP that violates the protocol ends the run.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import zmq  # noqa: TID251 - this module owns the coordinator's socket
from msgspec.structs import replace

from coordinator.launch.control_admission import ControlAdmission
from runtime.core.errors import ProtocolError, UsageError
from runtime.wire.codec import decode_from_lp
from runtime.wire.control import Abort, Busy, FromCoordinator, FromLp, Hello, Refused
from runtime.wire.fields import MAX_CONTROL_BYTES, PROTOCOL_VERSION
from runtime.wire.pieces import PieceJoiner, cut_text, encoded_messages
from runtime.wire.socket_file import unix_peer

_LINGER_MS = 500
_ANSWERS = 64
"""Refusals that are answered with the reason: a stranger need not read what is sent to it."""


@dataclass
class _Member:
    """A process that has joined as `rank` and is LP `lp`."""

    rank: int
    lp: int
    joiner: PieceJoiner[FromLp]
    has_number: bool = False
    """Whether it has sent a message as LP `lp`: it sends none as `rank` any more."""


class Rendezvous:
    """The control channel of `lps` LPs whose `Hello` carries `run_id`, at all of `endpoints`.

    Raises `UsageError` for an endpoint that cannot be bound.
    """

    def __init__(self, endpoints: Sequence[str], run_id: str, lps: int) -> None:
        self._run_id = run_id
        self._lps = lps
        self._members: dict[bytes, _Member] = {}
        self._answers = 0
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.set(zmq.LINGER, _LINGER_MS)
        # No limits on queues: a blocked LP would stall the simulation while the coordinator writes
        # files.
        self._socket.set(zmq.RCVHWM, 0)
        self._socket.set(zmq.SNDHWM, 0)
        # ZeroMQ drops a peer that sends more, before the memory is allocated.
        self._socket.set(zmq.MAXMSGSIZE, MAX_CONTROL_BYTES)
        # Sending to a peer that has gone raises instead of being dropped silently.
        self._socket.set(zmq.ROUTER_MANDATORY, 1)
        self._admission = ControlAdmission(self._context, self._socket, run_id)
        self.endpoints = tuple(map(self._bound, endpoints))
        """The address of its socket; an endpoint with port `*` has its number here."""

    @property
    def refusals(self) -> tuple[Refused, ...]:
        """Why strangers were refused, how often for each reason, and their addresses."""
        return self._admission.refused

    def lost(self) -> Mapping[int, str]:
        """The LPs whose connections have ended, with the reason."""
        ended = self._admission.lost
        return {
            member.lp: ended[member.rank]
            for member in self._members.values()
            if member.rank in ended
        }

    def connected(self) -> set[int]:
        """The LPs that have joined, and whose connections have not ended."""
        return {member.lp for member in self._members.values()} - self.lost().keys()

    def renumber(self, lp_of: Mapping[int, int]) -> None:
        """The process that has joined as rank r is LP `lp_of[r]` in all later messages."""
        for member in self._members.values():
            member.lp = lp_of[member.rank]

    def receive(self, timeout_s: float) -> tuple[int, FromLp] | None:
        """The next message of an LP, or None; `ProtocolError` if an LP violates the protocol.

        Pieces of a message are returned one by one, and in place of the last one the message.
        """
        if not self._admission.wait(timeout_s):
            return None
        frames = self._socket.recv_multipart(copy=False)
        identity, *parts = (frame.bytes for frame in frames)
        member = self._members.get(identity)
        if member is None:
            file, address = _origin(frames[-1])
            self._admission.known(file)
            return self._busy(parts) or self._admit(identity, parts, file, address)
        peer = f"LP {member.lp}"
        piece = _decode(parts, peer)
        message = self._numbered(member, member.joiner.joined(piece, peer) or piece)
        if isinstance(message, Hello):
            raise ProtocolError(peer, "it sends Hello a second time")
        return member.lp, message

    def send(self, lp: int, message: FromCoordinator) -> None:
        """Send to LP `lp`; without effect if it has not joined or has disconnected."""
        for identity, member in self._members.items():
            if member.lp == lp:
                self._send(identity, message)

    def broadcast(self, message: FromCoordinator) -> None:
        """Send to every LP that has joined and is still connected."""
        for identity in self._members:
            self._send(identity, message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        self._admission.close()
        self._socket.close()
        self._context.term()

    def _bound(self, endpoint: str) -> str:
        self._admission.encrypt(endpoint)
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            self._close()
            option = "TMPDIR" if endpoint.startswith("ipc://") else "--bind"
            raise UsageError(f"{option}: cannot create {endpoint}: {error}") from error
        self._admission.update()
        return self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def _numbered(self, member: _Member, message: FromLp) -> FromLp:
        """The message with the number of the LP, which its process may not have received yet."""
        if message.lp == member.lp:
            # A Hello has no number of an LP.
            member.has_number = not isinstance(message, Hello)
        elif message.lp == member.rank and not member.has_number:
            return replace(message, lp=member.lp)
        else:
            raise ProtocolError(f"LP {member.lp}", f"it sends as LP {message.lp}")
        return message

    def _busy(self, parts: Sequence[bytes]) -> tuple[int, Busy] | None:
        """The report of an LP that has joined, from its other connection."""
        with suppress(ProtocolError):
            message = _decode(parts, "a stranger")
            if isinstance(message, Busy) and message.run_id == self._run_id:
                is_member = any(member.lp == message.lp for member in self._members.values())
                return (message.lp, message) if is_member else None
        return None

    def _admit(
        self, identity: bytes, parts: Sequence[bytes], file: int, address: str
    ) -> tuple[int, Hello] | None:
        try:
            hello = self._check_hello(_decode(parts, "a stranger"))
        except ProtocolError as error:
            self._admission.refuse(error.problem, address)
            # A bounded number: a stranger need not read its answers, which would then fill the
            # memory here.
            if self._answers < _ANSWERS:
                self._answers += 1
                self._send(identity, Abort(cut_text(f"refused: {error.problem}")))
            return None
        if hello.protocol != PROTOCOL_VERSION:
            problem = f"it uses protocol {hello.protocol}, this coordinator {PROTOCOL_VERSION}"
            self._send(identity, Abort(f"refused: {problem}"))
            raise ProtocolError(f"LP {hello.lp}", problem)
        self._members[identity] = _Member(hello.lp, hello.lp, PieceJoiner(decode_from_lp))
        self._admission.joined(hello.lp, file)
        return hello.lp, hello

    def _check_hello(self, message: FromLp) -> Hello:
        if not isinstance(message, Hello):
            raise ProtocolError("a stranger", f"{type(message).__name__} before Hello")
        if message.run_id != self._run_id:
            raise ProtocolError("a stranger", "it belongs to another run")
        if not 0 <= message.lp < self._lps:
            raise ProtocolError(
                "a stranger", f"there is no LP {message.lp}, the run has {self._lps}"
            )
        # The first one stays: a process that is started twice must not replace one that works.
        if any(member.rank == message.lp for member in self._members.values()):
            raise ProtocolError("a stranger", f"LP {message.lp} has joined already")
        return message

    def _send(self, identity: bytes, message: FromCoordinator) -> None:
        # A peer that has disconnected is no error here: the exit of its process is noticed and
        # judged by `Watch`.
        with suppress(zmq.ZMQError):
            member = self._members.get(identity)
            for data in encoded_messages(0 if member is None else member.lp, message):
                self._socket.send_multipart([identity, data], flags=zmq.NOBLOCK)


def _origin(frame: zmq.Frame) -> tuple[int, str]:
    """The open file of the connection by which a frame has come, and the address of the peer."""
    return int(frame.get(zmq.SRCFD)), unix_peer(str(frame.get("Peer-Address")))


def _decode(parts: Sequence[bytes], peer: str) -> FromLp:
    if len(parts) != 1:
        raise ProtocolError(peer, f"a control message of {len(parts)} parts, not 1")
    return decode_from_lp(parts[0], peer)
