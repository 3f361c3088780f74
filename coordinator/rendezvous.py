"""The rendezvous of the LPs of a run: the coordinator's end of the control channel.

It is a ROUTER socket in the private directory of the run; a peer is identified by its `Hello`. A
peer without a valid `Hello` is a stranger: it receives the reason of the refusal, and the run goes
on without it. An admitted LP that violates the protocol ends the run.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import zmq  # noqa: TID251 - this module owns the coordinator's socket

from coordinator.strangers import Refusals
from runtime.core.errors import ProtocolError, UsageError
from runtime.wire.codec import decode_from_lp
from runtime.wire.control import Abort, Busy, FromCoordinator, FromLp, Hello
from runtime.wire.fields import MAX_CONTROL_BYTES, PROTOCOL_VERSION
from runtime.wire.pieces import PieceJoiner, cut_text, encoded_messages

_LINGER_MS = 500
_ANSWERS = 64
"""Refusals that are answered with the reason: a stranger need not read what is sent to it."""


class Rendezvous:
    """The control channel of `lps` LPs whose `Hello` carries `run_id`."""

    def __init__(self, endpoint: str, run_id: str, lps: int) -> None:
        self._run_id = run_id
        self._lps = lps
        self._lp_of: dict[bytes, int] = {}
        self._joiners: dict[int, PieceJoiner[FromLp]] = {}
        self._refusals, self._answers = Refusals(), 0
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
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise UsageError(f"TMPDIR: cannot create {endpoint}: {error}") from error

    @property
    def refusals(self) -> Mapping[str, int]:
        """Why strangers were refused, and how many messages for each reason."""
        return self._refusals.times

    def receive(self, timeout_s: float) -> tuple[int, FromLp] | None:
        """The next message of an LP, or None; `ProtocolError` if an LP violates the protocol.

        Pieces of a message are returned one by one, and in place of the last one the message.
        """
        if not self._socket.poll(round(timeout_s * 1000)):
            return None
        identity, *parts = self._socket.recv_multipart()
        if identity not in self._lp_of:
            return self._busy(parts) or self._admit(identity, parts)
        lp = self._lp_of[identity]
        piece = _decode(parts, f"LP {lp}")
        message = self._joiners[lp].joined(piece, f"LP {lp}") or piece
        if message.lp != lp:
            raise ProtocolError(f"LP {lp}", f"it sends as LP {message.lp}")
        if isinstance(message, Hello):
            raise ProtocolError(f"LP {lp}", "it sends Hello a second time")
        return lp, message

    def send(self, lp: int, message: FromCoordinator) -> None:
        """Send to LP `lp`; without effect if it has not joined or has disconnected."""
        for identity, joined in self._lp_of.items():
            if joined == lp:
                self._send(identity, message)

    def broadcast(self, message: FromCoordinator) -> None:
        """Send to every LP that has joined and is still connected."""
        for identity in self._lp_of:
            self._send(identity, message)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
        self._context.term()

    def _busy(self, parts: Sequence[bytes]) -> tuple[int, Busy] | None:
        """The report of an LP that has joined, from its other connection."""
        with suppress(ProtocolError):
            message = _decode(parts, "a stranger")
            if isinstance(message, Busy) and message.run_id == self._run_id:
                return (message.lp, message) if message.lp in self._lp_of.values() else None
        return None

    def _admit(self, identity: bytes, parts: Sequence[bytes]) -> tuple[int, Hello] | None:
        try:
            hello = self._check_hello(_decode(parts, "a stranger"))
        except ProtocolError as error:
            self._refusals.add(error.problem)
            if self._answers < _ANSWERS:
                self._answers += 1
                self._send(identity, Abort(cut_text(f"refused: {error.problem}")))
            return None
        if hello.protocol != PROTOCOL_VERSION:
            problem = f"it uses protocol {hello.protocol}, this coordinator {PROTOCOL_VERSION}"
            self._send(identity, Abort(f"refused: {problem}"))
            raise ProtocolError(f"LP {hello.lp}", problem)
        self._lp_of[identity] = hello.lp
        self._joiners[hello.lp] = PieceJoiner(decode_from_lp)
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
        if message.lp in self._lp_of.values():
            raise ProtocolError("a stranger", f"LP {message.lp} has joined already")
        return message

    def _send(self, identity: bytes, message: FromCoordinator) -> None:
        # A peer that has disconnected is no error here: the exit of its process is noticed and
        # judged by `Watch`.
        with suppress(zmq.ZMQError):
            for data in encoded_messages(self._lp_of.get(identity, 0), message):
                self._socket.send_multipart([identity, data], flags=zmq.NOBLOCK)


def _decode(parts: Sequence[bytes], peer: str) -> FromLp:
    if len(parts) != 1:
        raise ProtocolError(peer, f"a control message of {len(parts)} parts, not 1")
    return decode_from_lp(parts[0], peer)
