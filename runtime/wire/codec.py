"""Encodes messages to bytes and decodes them; what is not a valid message is a `ProtocolError`.

Every error names the sender: of a control message the LP of the connection, of a message between
LPs the LP in its envelope, which is decoded first. So the receiver of a malformed message is never
blamed for it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import le
from typing import NoReturn, TypeVar

import msgspec

from runtime.core.errors import ProtocolError
from runtime.core.trace import OpRecord
from runtime.wire import field_path
from runtime.wire.control import FromCoordinator, FromLp
from runtime.wire.fields import MAX_CONTROL_BYTES, MAX_FRAME_BYTES, Count, LpNumber, Wire
from runtime.wire.frames import Envelope, Frame, Message, PeerContent

_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_STRANGER = "an unknown process"

_T = TypeVar("_T")
# Encoders and decoders have no state between calls, so one of each serves the process.
_encoder = msgspec.msgpack.Encoder()


class _OpenEnvelope(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """An `Envelope` with its content still encoded, so that the sender is decoded first."""

    lp: LpNumber
    number: Count
    trips: Count
    content: msgspec.Raw
    sent_ns: Count = 0


_whole_decoder = msgspec.msgpack.Decoder(Envelope)
_envelope_decoder = msgspec.msgpack.Decoder(_OpenEnvelope)
_content_decoder = msgspec.msgpack.Decoder(PeerContent)
_list_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])
_records_decoder = msgspec.msgpack.Decoder(tuple[OpRecord, ...])
_from_lp_decoder = msgspec.msgpack.Decoder(FromLp)
_from_coordinator_decoder = msgspec.msgpack.Decoder(FromCoordinator)


def encode_peer(
    lp: int, number: int, content: PeerContent, trips: int = 0, sent_ns: int = 0
) -> bytes:
    """The envelope of the content that LP `lp` sends to another LP after `number` earlier ones."""
    return _encoder.encode(Envelope(lp, number, trips, content, sent_ns))


def no_body(message: Message) -> str:
    """The rule of a model whose messages have neither bodies nor payloads."""
    return "a packet in a run without chips" if message.body or message.payload else ""


class PeerDecoder:
    """Decodes and checks what the other LPs of a run send to LP `lp`.

    `lp_of[entity]` is the LP that holds an entity (a SIP). `body_fault` returns what is wrong with
    the body or the payload of a message, or an empty text: the rules of the model. Nothing between
    two LPs may be missing or come twice: their contents have consecutive numbers.
    """

    def __init__(
        self,
        lp: int,
        lp_of: Sequence[int],
        body_fault: Callable[[Message], str] = no_body,
    ) -> None:
        self._lp = lp
        self._lp_of = lp_of
        self._lps = max(lp_of, default=-1) + 1
        self._due = [0] * self._lps
        self._body_fault = body_fault

    def decode(self, data: bytes) -> Envelope:
        """The sending LP and what it sent.

        Raises `ProtocolError`, which names that LP, for anything that is not allowed.
        """
        envelope = self._envelope(data)
        lp, number = envelope.lp, envelope.number
        # ZeroMQ may lose or repeat contents of a connection that ends; consecutive numbers make
        # either an error, and not a wrong result.
        due = self._due[lp]
        if number != due:
            self._refuse_number(lp, number, due)
        self._due[lp] = due + 1
        if isinstance(envelope.content, Frame):
            self._check(lp, envelope.content)
        return envelope

    def _envelope(self, data: bytes) -> Envelope:
        """The envelope and its content, in one pass where all is as it should be."""
        with suppress(*_UNDECODABLE):
            whole = _whole_decoder.decode(data)
            if self._lp != whole.lp < self._lps:
                return whole
        # In two passes, so that the error names the sender if that is valid.
        opened = self._opened(data)
        peer = f"LP {opened.lp}"
        content = _decode(_content_decoder, opened.content, peer, MAX_FRAME_BYTES)
        return Envelope(opened.lp, opened.number, opened.trips, content, opened.sent_ns)

    def _refuse_number(self, lp: int, number: int, due: int) -> NoReturn:
        """Raise the error of a content that is not the next one of LP `lp`."""
        problem = f"content {number} from LP {lp} to LP {self._lp} where {due} is due: "
        if number < due:
            raise ProtocolError(f"LP {lp}", problem + "it came a second time")
        missing = f"content {due} was" if number == due + 1 else f"{due} to {number - 1} were"
        raise ProtocolError(f"LP {lp}", f"{problem}{missing} lost")

    def sender(self, data: bytes) -> str:
        """The LP of this run that an envelope names as its sender, or an unknown process."""
        try:
            return f"LP {self._opened(data).lp}"
        except ProtocolError as error:
            return error.peer

    def _opened(self, data: bytes) -> _OpenEnvelope:
        envelope = _decode(_envelope_decoder, data, _STRANGER, MAX_FRAME_BYTES)
        # A sender that is no other LP of this run is not identified by its number.
        if envelope.lp >= self._lps or envelope.lp == self._lp:
            raise ProtocolError(
                _STRANGER,
                f"it sends as LP {envelope.lp} to LP {self._lp}, the run has {self._lps} LPs",
            )
        return envelope

    def _check(self, sender: int, frame: Frame) -> None:
        promises_ps = frame.promises_ps
        # Messages that cross n + 1 channels or more are some of those that cross n or more, so the
        # promise for them is never less.
        if len(promises_ps) > 1 and not all(map(le, promises_ps, promises_ps[1:])):
            raise ProtocolError(f"LP {sender}", "field promises_ps: they decrease with the hops")
        lp_of, entities, body_fault = self._lp_of, len(self._lp_of), self._body_fault
        for index, message in enumerate(frame.messages):
            source, target = message.source, message.target
            if source >= entities or lp_of[source] != sender:
                fault = f"field source: {source} is not on LP {sender}"
            elif target >= entities or lp_of[target] != self._lp:
                fault = f"field target: {target} is not on LP {self._lp}"
            else:
                fault = body_fault(message)
            if fault:
                raise ProtocolError(f"LP {sender}", f"message {index} of a frame: {fault}")


def encode_control(message: Wire) -> bytes:
    """One control message."""
    return _encoder.encode(message)


def decode_from_lp(data: bytes, peer: str, limit: int = MAX_CONTROL_BYTES) -> FromLp:
    """A control message of at most `limit` bytes that an LP sent; raises `ProtocolError` naming
    `peer`.
    """
    return _decode(_from_lp_decoder, data, peer, limit)


def decode_from_coordinator(
    data: bytes, peer: str, limit: int = MAX_CONTROL_BYTES
) -> FromCoordinator:
    """A control message of at most `limit` bytes that the coordinator sent; raises `ProtocolError`
    naming `peer`.
    """
    return _decode(_from_coordinator_decoder, data, peer, limit)


def encode_records(records: Sequence[OpRecord]) -> bytes:
    """A chunk of an op log."""
    return _encoder.encode(records)


def decode_records(data: bytes, peer: str) -> tuple[OpRecord, ...]:
    """The op records of a chunk; raises `ProtocolError` naming `peer`."""
    return _decode(_records_decoder, data, peer)


def check_list(data: bytes, peer: str) -> None:
    """Raise `ProtocolError` naming `peer` if a chunk is no list; its items are not checked.

    This takes a seventh of the time of `decode_records`.
    """
    _decode(_list_decoder, data, peer)


def _decode(
    decoder: msgspec.msgpack.Decoder[_T],
    data: bytes | msgspec.Raw,
    peer: str,
    limit: int = MAX_CONTROL_BYTES,
) -> _T:
    # Before decoding, which takes time and memory in proportion.
    if len(data) > limit:  # type: ignore[arg-type]
        raise ProtocolError(peer, f"message of {len(data):,} bytes, the limit is {limit:,}")
    try:
        return decoder.decode(data)
    except _UNDECODABLE as error:
        _refuse(decoder, data, peer, error)


def _refuse(
    decoder: msgspec.msgpack.Decoder[_T], data: bytes | msgspec.Raw, peer: str, error: Exception
) -> NoReturn:
    """Raise the error of a message that does not decode, by field name where possible."""
    try:
        value = msgspec.msgpack.decode(data)
    except _UNDECODABLE:
        value = None
    problem = field_path.named(str(error), decoder.type, value)
    raise ProtocolError(peer, f"malformed message: {problem}") from error
