"""The body of a message between SIPs: a run of packets as one block of bytes.

A block is a sequence of *words*, signed integers of 64 bits in the byte order of the host, which
all LPs of a run share. The fields of `PacketRun` follow each other, as those of a struct in it do:

    integer, bool    a word
    Text             a word, the number of bytes in UTF-8; then these, and zeros up to a whole word
    X or none        a word, 0 for none; 1, then X
    X[]              a word, the number of entries; then the entries

So a program in C packs and checks a block without an object for each number, as `run_block.pyx`
of the LP does. The structs decide what is valid; here they are read by reflection.
"""

from functools import cache
from itertools import chain
from operator import le, lt
from struct import Struct
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from runtime.wire import field_path
from runtime.wire.fields import Text
from runtime.wire.frames import Message
from runtime.wire.packets import (
    CARRIERS,
    MAX_RUN_PACKETS,
    PacketRun,
    TransferFlow,
    TransferHeader,
    TransferRows,
)

WORD_BYTES = 8
_WORD = Struct("=q")


class _Body(msgspec.Struct, array_like=True):
    """Gives errors the name of the field that a block is."""

    body: PacketRun


def pack(run: PacketRun) -> bytes:
    """The block of a run."""
    return b"".join(_packed(run, PacketRun))


def unpack(block: bytes) -> PacketRun:
    """The run of a block; raises `ValueError`, which names the field, for one that is malformed."""
    reader = _Reader(block)
    values = [reader.value(PacketRun, "body")]
    reader.end()
    try:
        return msgspec.convert(values, _Body).body
    except msgspec.ValidationError as error:
        raise ValueError(field_path.named(str(error), _Body, values)) from None


def run_of(message: Message) -> PacketRun:
    """The packets of a message; raises `ValueError`, which names the field that breaks a rule.

    Rules of the model, as which nodes exist, are not checked.
    """
    run = unpack(message.body)
    fault = _run_fault(run, message) or _payload_fault(run, len(message.payload))
    if fault:
        raise ValueError(fault)
    return run


def word_limits() -> dict[str, Any]:
    """(least, most) for the fields of a block that are words, in their order, for programs in C."""
    header = _limits(TransferHeader)
    return {
        "number": [_limits(PacketRun)["number"]],
        # A kind is one of a list.
        "header": [(0, 0), *list(header.values())[:-1]],
        "flow": list(_limits(TransferFlow).values()),
        "rows": list(_limits(TransferRows).values()),
        "element": [header["element"]],
        "columns": list(_limits(PacketRun).values())[1:],
        "call": get_args(Text)[1].max_length,
        "packets": MAX_RUN_PACKETS,
    }


def _limits(struct: type[msgspec.Struct]) -> dict[str, tuple[int, int]]:
    """The ranges of the integers in a struct, and of those in its arrays."""
    limits: dict[str, tuple[int, int]] = {}
    for name, kind in get_type_hints(struct, include_extras=True).items():
        entry = get_args(kind)[0] if get_origin(kind) is tuple else kind
        if get_origin(entry) is Annotated and get_args(entry)[0] is int:
            meta = get_args(entry)[1]
            limits[name] = meta.ge, meta.lt - 1 if meta.le is None else meta.le
    return limits


def _run_fault(run: PacketRun, message: Message) -> str:
    packets = len(run.heads_ps)
    if not 1 <= packets <= MAX_RUN_PACKETS:
        return f"field body.heads_ps: {packets:,} packets, a run has 1 to {MAX_RUN_PACKETS:,}"
    for name in ("tails_ps", "seqs", "begins", "sizes"):
        entries = len(getattr(run, name))
        if entries != packets:
            return f"field body.{name}: {entries:,} entries for {packets:,} packets"
    if run.heads_ps[0] != message.time_ps or run.seqs[0] != message.seq:
        return "field body: the first packet has another time or number than the message"
    # A link is FIFO: what the sync loop and the inbox rely on, when they see the first packet.
    if not all(map(le, run.heads_ps, run.heads_ps[1:])):
        return "field body.heads_ps: the packets of a transfer overtake each other"
    if not all(map(lt, run.seqs, run.seqs[1:])):
        return "field body.seqs: the packets of a transfer are not in their order"
    return ""


def _payload_fault(run: PacketRun, nbytes: int) -> str:
    # In a run without data a transfer has no payload, but its packets occupy their size of a link.
    if nbytes and not run.ends:
        return f"field payload: {nbytes:,} bytes before the last packet of a transfer"
    header = run.header
    if nbytes and header is not None and (nbytes != header.total or header.kind not in CARRIERS):
        transfer = f"{header.kind.name} of {header.total:,} bytes"
        return f"field payload: {nbytes:,} bytes for a transfer {transfer}"
    return ""


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(struct, include_extras=True)
    return tuple((name, _bare(hints[name])) for name in struct.__struct_fields__)


def _bare(kind: Any) -> Any:
    """A type without its range."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _optional(kind: Any) -> Any:
    """X for `X or none`, None for another type."""
    members = get_args(kind)
    return next(each for each in members if each is not NoneType) if NoneType in members else None


def _packed(value: Any, kind: Any) -> list[bytes]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return list(
            chain.from_iterable(_packed(getattr(value, name), of) for name, of in _fields(kind))
        )
    if (inner := _optional(kind)) is not None:
        return [_WORD.pack(0)] if value is None else [_WORD.pack(1), *_packed(value, inner)]
    if get_origin(kind) is tuple:
        return [_words(len(value)).pack(len(value), *value)]
    if kind is str:
        text = value.encode()
        return [_WORD.pack(len(text)), text, bytes(-len(text) % WORD_BYTES)]
    return [_WORD.pack(value)]


def _words(count: int) -> Struct:
    """A number of entries, and the entries."""
    return Struct(f"={1 + count}q")


class _Reader:
    """Reads the values of a block in their order, as msgspec converts them to a struct.

    `field` is the name of what is read, for an error.
    """

    def __init__(self, block: bytes) -> None:
        self._block, self._next = block, 0

    def value(self, kind: Any, field: str) -> Any:
        """The next value of a type; the ranges of integers are not checked."""
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return [self.value(of, f"{field}.{name}") for name, of in _fields(kind)]
        if (inner := _optional(kind)) is not None:
            return self.value(inner, field) if self._flag(field) else None
        if get_origin(kind) is tuple:
            entries = self._taken(self._word(field), WORD_BYTES, field)
            return [word for (word,) in _WORD.iter_unpack(entries)]
        if kind is str:
            return self._text(field)
        return self._flag(field) if kind is bool else self._word(field)

    def end(self) -> None:
        """Nothing follows the last field."""
        if more := len(self._block) - self._next:
            raise ValueError(f"field body: {more:,} bytes after its last field")

    def _taken(self, count: int, nbytes: int, field: str) -> bytes:
        """The bytes of the next `count` items of `nbytes` each."""
        begin, self._next = self._next, self._next + count * nbytes
        # A count comes from the peer: it must not make the receiver read behind the block.
        if count < 0 or self._next > len(self._block):
            raise ValueError(f"field {field}: the block ends before it")
        return self._block[begin : self._next]

    def _word(self, field: str) -> int:
        (word,) = _WORD.unpack(self._taken(1, WORD_BYTES, field))
        return word

    def _flag(self, field: str) -> bool:
        word = self._word(field)
        if word not in (0, 1):
            raise ValueError(f"field {field}: {word} is neither 0 nor 1")
        return bool(word)

    def _text(self, field: str) -> str:
        nbytes = self._word(field)
        text = self._taken(nbytes, 1, field)
        if any(self._taken(-nbytes % WORD_BYTES, 1, field)):
            raise ValueError(f"field {field}: no zeros behind the text")
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"field {field}: {error}") from None
