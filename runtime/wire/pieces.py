"""Control messages of any length: a message that is too long for the socket is sent in pieces.

A socket drops a connection whose message is longer than `MAX_CONTROL_BYTES`, before the memory for
it is allocated. So a longer message is encoded, divided, and sent as consecutive `MessagePiece`s;
the receiver joins them. A message beyond `MAX_JOINED_BYTES` is refused where it is sent, by the
name of its largest field.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct
from msgspec.msgpack import encode

from runtime.core.errors import KernbenchError, ProtocolError
from runtime.wire.codec import encode_control
from runtime.wire.control import MessagePiece
from runtime.wire.fields import (
    CHUNK_BYTES,
    LONGEST_TEXT_BYTES,
    MAX_CONTROL_BYTES,
    MAX_JOINED_BYTES,
    Wire,
)

_Message = TypeVar("_Message")


class MessageSizeError(KernbenchError):
    """A message is longer than the protocol allows.

    Fields: the name of the message, its bytes, the limit, its largest field, the bytes of that.
    """

    def __init__(self, message: str, nbytes: int, limit: int, field: str, part: int) -> None:
        super().__init__(message, nbytes, limit, field, part)
        self.message, self.nbytes, self.limit = message, nbytes, limit
        self.field, self.part = field, part

    def __str__(self) -> str:
        return (
            f"a message {self.message} of {self.nbytes:,} bytes, the limit is {self.limit:,}; its "
            f"largest field is {self.field}, {self.part:,} bytes"
        )


def encoded_messages(lp: int, message: Wire, limit: int = MAX_JOINED_BYTES) -> Iterator[bytes]:
    """The frames of a message on the connection of LP `lp`: the message itself, or its pieces.

    Raises `MessageSizeError` for more than `limit` bytes.
    """
    data = encode_control(message)
    if len(data) <= MAX_CONTROL_BYTES:
        yield data
        return
    require_size(message, len(data), limit)
    for start in range(0, len(data), CHUNK_BYTES):
        end = start + CHUNK_BYTES
        yield encode_control(MessagePiece(lp, data[start:end], end >= len(data)))


def require_size(message: object, nbytes: int, limit: int) -> None:
    """Raise `MessageSizeError` if the encoding of a message, of `nbytes`, is beyond `limit`."""
    if nbytes > limit:
        field, part = _largest_field(message)
        raise MessageSizeError(type(message).__name__, nbytes, limit, field, part)


class PieceJoiner(Generic[_Message]):
    """Joins the pieces that `peer` sends; `decode(data, peer, limit)` decodes the result."""

    def __init__(self, decode: Callable[[bytes, str, int], _Message]) -> None:
        self._decode = decode
        self._data = bytearray()

    def joined(self, message: _Message, peer: str) -> _Message | None:
        """The message that is complete with `message`; None after a piece which is not the last.

        Raises `ProtocolError` naming `peer`.
        """
        if not isinstance(message, MessagePiece):
            # One connection keeps the order of its messages, so nothing may stand between two
            # pieces.
            if self._data:
                raise ProtocolError(peer, f"{type(message).__name__} between pieces of a message")
            return message
        self._data += message.data
        if len(self._data) > MAX_JOINED_BYTES:
            raise ProtocolError(
                peer, f"pieces of a message of more than {MAX_JOINED_BYTES:,} bytes, the limit"
            )
        if not message.last:
            return None
        data, self._data = bytes(self._data), bytearray()
        whole = self._decode(data, peer, MAX_JOINED_BYTES)
        if isinstance(whole, MessagePiece):
            raise ProtocolError(peer, "a piece of pieces")
        return whole


def cut_text(text: str) -> str:
    """A text of at most `LONGEST_TEXT_BYTES`, with a note of what was cut.

    Half of a pair of surrogates, which has no UTF-8, is written as its escape sequence.
    """
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= LONGEST_TEXT_BYTES:
        return data.decode()
    note = f" … [cut: {len(data) - LONGEST_TEXT_BYTES:,} more bytes]"
    # A character on the border is left out.
    return data[:LONGEST_TEXT_BYTES].decode(errors="ignore") + note


def _largest_field(message: object) -> tuple[str, int]:
    """The name of the field with most of the bytes, as `sips[0].outcome.table.rows`."""
    name, nbytes, value = "", len(encode(message)), message
    while parts := _parts(value):
        size, label, part = max(
            ((len(encode(part)), label, part) for label, part in parts), key=lambda each: each[0]
        )
        # Many parts of a similar size: they are too long together.
        if name and size < nbytes / 2:
            break
        name, nbytes, value = name + label, size, part
    return name.lstrip("."), nbytes


def _parts(value: object) -> list[tuple[str, Any]]:
    if isinstance(value, Struct):
        return [(f".{field}", getattr(value, field)) for field in value.__struct_fields__]
    if isinstance(value, tuple):
        entries = cast("tuple[Any, ...]", value)
        return [(f"[{index}]", entry) for index, entry in enumerate(entries)]
    return []
