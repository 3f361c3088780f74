"""Encodes messages to bytes and decodes them; what is not a valid message is a `ProtocolError`.

Every error names the sender: of a control message the LP of the connection, of a message between
LPs the LP in its envelope, which is decoded first. So the receiver of a malformed message is never
blamed for it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import le, lt
from typing import NoReturn, TypeVar

import msgspec

from runtime.core.errors import ProtocolError
from runtime.core.trace import OpRecord
from runtime.wire import field_path
from runtime.wire.control import FromCoordinator, FromLp
from runtime.wire.fields import LpNumber, Wire
from runtime.wire.frames import (
    Envelope,
    Frame,
    FrameHeader,
    Grant,
    Message,
    MessageHeader,
    PeerContent,
    SilenceReport,
)
from runtime.wire.packets import CARRIERS, MAX_RUN_PACKETS, PacketRun

MAX_HEADER_BYTES = 16 << 20
_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_STRANGER = "an unknown process"

_T = TypeVar("_T")
# Encoders and decoders have no state between calls, so one of each serves the process.
_encoder = msgspec.msgpack.Encoder()


class _OpenEnvelope(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """An `Envelope` with its content still encoded, so that the sender is decoded first."""

    run_id: str
    lp: LpNumber
    content: msgspec.Raw


_Content = FrameHeader | SilenceReport | Grant

_whole_decoder = msgspec.msgpack.Decoder(Envelope)
_envelope_decoder = msgspec.msgpack.Decoder(_OpenEnvelope)
_content_decoder = msgspec.msgpack.Decoder(_Content)
_list_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])
_records_decoder = msgspec.msgpack.Decoder(tuple[OpRecord, ...])
_from_lp_decoder = msgspec.msgpack.Decoder(FromLp)
_from_coordinator_decoder = msgspec.msgpack.Decoder(FromCoordinator)


def encode_peer(run_id: str, lp: int, content: PeerContent) -> tuple[bytes, bytes]:
    """The two parts in which LP `lp` sends `content`: MessagePack, and raw bytes.

    The second part has the payloads of the messages, in their order.
    """
    if not isinstance(content, Frame):
        return _encoder.encode(Envelope(run_id, lp, content)), b""
    # Tuples are encoded as the structs of the wire are, and are made faster.
    headers = [
        (m.time_ps, m.source, m.target, m.seq, m.body, len(m.payload)) for m in content.messages
    ]
    header = ("FrameHeader", content.promises_ps, content.null_hops, headers)
    payloads = [m.payload for m in content.messages if m.payload]
    return _encoder.encode((run_id, lp, header)), b"".join(payloads)


def no_fault(run: PacketRun | None) -> str:
    """The rules of a model whose messages carry no packets."""
    return "" if run is None else "a packet in a run without chips"


class PeerDecoder:
    """Decodes and checks what the other LPs of run `run_id` send to LP `lp`.

    `lp_of[entity]` is the LP that holds an entity (a SIP). `packet_fault` returns what is wrong
    with the body of a message, or an empty text: the rules of the model, which are no part of the
    wire.
    """

    def __init__(
        self,
        run_id: str,
        lp: int,
        lp_of: Sequence[int],
        packet_fault: Callable[[PacketRun | None], str] = no_fault,
    ) -> None:
        self._run_id = run_id
        self._lp = lp
        self._lp_of = lp_of
        self._lps = max(lp_of, default=-1) + 1
        self._packet_fault = packet_fault

    def decode(self, header: bytes, payload: bytes | memoryview) -> tuple[int, PeerContent]:
        """The sending LP and what it sent.

        Raises `ProtocolError`, which names that LP, for anything that is not allowed.
        """
        lp, content = self._content(header)
        if isinstance(content, FrameHeader):
            return lp, self._frame(lp, content, payload)
        # Only frames have messages, so only frames have payloads.
        if payload:
            raise ProtocolError(f"LP {lp}", f"{len(payload):,} payload bytes without a frame")
        return lp, content

    def _content(self, header: bytes) -> tuple[int, FrameHeader | SilenceReport | Grant]:
        """The sending LP and the content, in one pass where all is as it should be."""
        with suppress(*_UNDECODABLE):
            if len(header) <= MAX_HEADER_BYTES:
                whole = _whole_decoder.decode(header)
                if whole.run_id == self._run_id and self._lp != whole.lp < self._lps:
                    return whole.lp, whole.content
        # In two passes, so that the error names the sender if that is valid.
        envelope = self._opened(header)
        return envelope.lp, _decode(_content_decoder, envelope.content, f"LP {envelope.lp}")

    def sender(self, header: bytes) -> str:
        """The LP of this run that a header names as its sender, or an unknown process."""
        try:
            return f"LP {self._opened(header).lp}"
        except ProtocolError as error:
            return error.peer

    def _opened(self, header: bytes) -> _OpenEnvelope:
        envelope = _decode(_envelope_decoder, header, _STRANGER)
        # A sender that is not of this run, or no other LP of it, is not identified by its number.
        if envelope.run_id != self._run_id:
            raise ProtocolError(_STRANGER, f"it sends as LP {envelope.lp} of another run")
        if envelope.lp >= self._lps or envelope.lp == self._lp:
            raise ProtocolError(
                _STRANGER,
                f"it sends as LP {envelope.lp} to LP {self._lp}, the run has {self._lps} LPs",
            )
        return envelope

    def _frame(self, sender: int, header: FrameHeader, payload: bytes | memoryview) -> Frame:
        if not header.promises_ps:
            raise ProtocolError(f"LP {sender}", "a frame without a promise")
        promises_ps = header.promises_ps
        if len(promises_ps) > 1 and not all(map(le, promises_ps, promises_ps[1:])):
            raise ProtocolError(f"LP {sender}", "field promises_ps: they decrease with the hops")
        announced = sum([h.payload_bytes for h in header.messages])
        if announced != len(payload):
            raise ProtocolError(
                f"LP {sender}",
                f"its messages announce {announced:,} payload bytes, {len(payload):,} came",
            )
        # Payloads are slices of one view: no modelled byte is copied.
        view = memoryview(payload)
        messages: list[Message] = []
        end = 0
        for index, h in enumerate(header.messages):
            begin, end = end, end + h.payload_bytes
            fault = self._fault(sender, h)
            if fault:
                raise ProtocolError(f"LP {sender}", f"message {index} of a frame: {fault}")
            messages.append(
                Message(
                    time_ps=h.time_ps,
                    source=h.source,
                    target=h.target,
                    seq=h.seq,
                    body=h.body,
                    payload=view[begin:end] if h.payload_bytes else b"",
                )
            )
        return Frame(header.promises_ps, header.null_hops, tuple(messages))

    def _fault(self, sender: int, header: MessageHeader) -> str:
        """The first rule that a message breaks, or an empty text."""
        lp_of, source, target = self._lp_of, header.source, header.target
        if source >= len(lp_of) or lp_of[source] != sender:
            return f"field source: {source} is not on LP {sender}"
        if target >= len(lp_of) or lp_of[target] != self._lp:
            return f"field target: {target} is not on LP {self._lp}"
        body = header.body
        if body is None:
            if header.payload_bytes:
                return f"field payload_bytes: {header.payload_bytes:,} without a packet"
        elif fault := _run_fault(body, header) or _payload_fault(body, header.payload_bytes):
            return fault
        return self._packet_fault(body)


def _run_fault(run: PacketRun, header: MessageHeader) -> str:
    packets = len(run.heads_ps)
    if not 1 <= packets <= MAX_RUN_PACKETS:
        return f"field body.heads_ps: {packets:,} packets, a run has 1 to {MAX_RUN_PACKETS:,}"
    if not packets == len(run.tails_ps) == len(run.seqs) == len(run.begins) == len(run.sizes):
        return _column_fault(run)
    if run.heads_ps[0] != header.time_ps or run.seqs[0] != header.seq:
        return "field body: the first packet has another time or number than the message"
    # A link is FIFO: what the sync loop and the inbox rely on, when they see the first packet.
    if not all(map(le, run.heads_ps, run.heads_ps[1:])):
        return "field body.heads_ps: the packets of a transfer overtake each other"
    if not all(map(lt, run.seqs, run.seqs[1:])):
        return "field body.seqs: the packets of a transfer are not in their order"
    return ""


def _column_fault(run: PacketRun) -> str:
    packets = len(run.heads_ps)
    lengths = {name: len(getattr(run, name)) for name in ("tails_ps", "seqs", "begins", "sizes")}
    name, entries = next(each for each in lengths.items() if each[1] != packets)
    return f"field body.{name}: {entries:,} entries for {packets:,} packets"


def _payload_fault(run: PacketRun, nbytes: int) -> str:
    # In a run without data a transfer has no payload, but its packets occupy their size of a link.
    if nbytes and not run.ends:
        return f"field payload_bytes: {nbytes:,} before the last packet of a transfer"
    header = run.header
    if nbytes and header is not None and (nbytes != header.total or header.kind not in CARRIERS):
        transfer = f"{header.kind.name} of {header.total:,} bytes"
        return f"field payload_bytes: {nbytes:,} for a transfer {transfer}"
    return ""


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


def check_list(data: bytes, peer: str) -> None:
    """Raise `ProtocolError` naming `peer` if a chunk is no list; its items are not checked.

    This takes a seventh of the time of `decode_records`.
    """
    _decode(_list_decoder, data, peer)


def _decode(decoder: msgspec.msgpack.Decoder[_T], data: bytes | msgspec.Raw, peer: str) -> _T:
    # Before decoding, which takes time and memory in proportion.
    if len(data) > MAX_HEADER_BYTES:  # type: ignore[arg-type]
        raise ProtocolError(
            peer, f"message of {len(data):,} bytes, the limit is {MAX_HEADER_BYTES:,}"
        )
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
