"""Bytes on a socket to messages and back. Whatever does not decode to a known message is a `ProtocolError`."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

import msgspec

from runtime.core.errors import ProtocolError
from runtime.core.trace import OpRecord
from runtime.wire.messages import (
    Envelope,
    Frame,
    FrameHeader,
    FromCoordinator,
    FromLp,
    Message,
    MessageHeader,
    PeerContent,
    Wire,
)

MAX_HEADER_BYTES = 16 << 20
MAX_PAYLOAD_BYTES = 1 << 30

_T = TypeVar("_T")
_encoder = msgspec.msgpack.Encoder()


_envelope_decoder = msgspec.msgpack.Decoder(Envelope)
_records_decoder = msgspec.msgpack.Decoder(tuple[OpRecord, ...])
_from_lp_decoder = msgspec.msgpack.Decoder(FromLp)
_from_coordinator_decoder = msgspec.msgpack.Decoder(FromCoordinator)


def encode_peer(run_id: str, lp: int, content: PeerContent) -> tuple[bytes, bytes]:
    """What LP `lp` says to another: a MessagePack part, and a raw part with the payloads of its messages in order."""
    if not isinstance(content, Frame):
        return _encoder.encode(Envelope(run_id, lp, content)), b""
    headers = tuple(
        MessageHeader(m.time_ps, m.source, m.target, m.seq, m.body, len(m.payload), m.text)
        for m in content.messages
    )
    header = FrameHeader(content.promise_ps, content.null_hops, headers, content.transit_ps)
    return _encoder.encode(Envelope(run_id, lp, header)), b"".join(
        m.payload for m in content.messages
    )


def decode_peer(header: bytes, payload: bytes | memoryview, run_id: str) -> tuple[int, PeerContent]:
    """The LP that speaks and what it says. A wrong `run_id` or a payload of the wrong size is a `ProtocolError`."""
    envelope = _decode(_envelope_decoder, header, "a peer LP")
    peer = f"LP {envelope.lp}"
    if envelope.run_id != run_id:
        raise ProtocolError(peer, "it belongs to another run")
    content = envelope.content
    if not isinstance(content, FrameHeader):
        return envelope.lp, content
    ends = list(accumulate((h.payload_bytes for h in content.messages), initial=0))
    if (
        any(h.payload_bytes < 0 for h in content.messages)
        or ends[-1] != len(payload)
        or ends[-1] > MAX_PAYLOAD_BYTES
    ):
        raise ProtocolError(
            peer, f"its messages announce {ends[-1]:,} payload bytes, {len(payload):,} came"
        )
    view = memoryview(payload)
    messages = tuple(
        Message(h.time_ps, h.source, h.target, h.seq, h.body, view[begin:end], h.text)
        for h, (begin, end) in zip(content.messages, pairwise(ends), strict=True)
    )
    return envelope.lp, Frame(content.promise_ps, content.null_hops, messages, content.transit_ps)


def encode_control(message: Wire) -> bytes:
    """One control message."""
    return _encoder.encode(message)


def decode_from_lp(data: bytes, peer: str) -> FromLp:
    """A control message that an LP sent; raises `ProtocolError` naming `peer`."""
    return _decode(_from_lp_decoder, data, peer)


def decode_from_coordinator(data: bytes, peer: str) -> FromCoordinator:
    """A control message that the coordinator sent; raises `ProtocolError` naming `peer`."""
    return _decode(_from_coordinator_decoder, data, peer)


def encode_records(records: Sequence[OpRecord]) -> bytes:
    """A chunk of an op log."""
    return _encoder.encode(records)


def decode_records(data: bytes, peer: str) -> tuple[OpRecord, ...]:
    """The op records of a chunk; raises `ProtocolError` naming `peer`."""
    return _decode(_records_decoder, data, peer)


def _decode(decoder: msgspec.msgpack.Decoder[_T], data: bytes, peer: str) -> _T:
    if len(data) > MAX_HEADER_BYTES:
        raise ProtocolError(
            peer, f"message of {len(data):,} bytes, the limit is {MAX_HEADER_BYTES:,}"
        )
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(peer, f"malformed message: {error}") from error
