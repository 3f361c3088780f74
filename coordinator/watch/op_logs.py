"""Stores the op logs of all SIPs as they arrive, and merges them into one total order.

A log of a large run has millions of records, which as objects would take several times the memory
of the whole simulation. Chunks are therefore kept as they were sent, about 90 bytes a record; only
the times and the component of every record are stored beside them, from which the order and the
lanes of a timeline follow. The records themselves are read once more when they are written.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import merge
from typing import Self

from msgspec import Struct

from coordinator.watch.record_index import RecordIndex
from runtime.core.errors import ProtocolError
from runtime.core.trace import OpRecord
from runtime.wire.codec import check_list, decode_records, encode_records

_DECODED_CHUNKS = 8
"""Chunks of a SIP that are kept decoded while the logs are merged. A record that started long
before its neighbours in the log lies in a later chunk."""


class LoggedOp(Struct, frozen=True, gc=False):
    """A record of the merged op log; `index` is its position in the log of its SIP."""

    sip: int
    index: int
    record: OpRecord


class Track(Struct, frozen=True, order=True, gc=False):
    """A component of a SIP, whose operations are one line of a timeline, or several lanes."""

    sip: int
    cube: int
    pe: int
    engine: str


Lane = tuple[Track, int]
"""A thread of a timeline: a component, and which of its lanes."""


class Span(Struct, frozen=True, gc=False):
    """Position, times and component of a record of the merged log."""

    sip: int
    index: int
    start_ps: int
    end_ps: int
    track: Track


@dataclass
class SipLog:
    """The log of a SIP: `firsts` are the indices of the first records of its chunks.

    Of each record: its times, the number of its component in `OpLogs.tracks`, and, with the
    compiled core, the byte of its chunk at which it begins.
    """

    chunks: list[bytes] = field(default_factory=list[bytes])
    firsts: list[int] = field(default_factory=list[int])
    starts_ps: "array[int]" = field(default_factory=lambda: array("q"))
    ends_ps: "array[int]" = field(default_factory=lambda: array("q"))
    tracks: "array[int]" = field(default_factory=lambda: array("I"))
    offsets: "array[int]" = field(default_factory=lambda: array("I"))

    def order(self) -> "array[int]":
        """The indices of the records by start; records that start together in their order."""
        return array("L", sorted(range(len(self.starts_ps)), key=self.starts_ps.__getitem__))


class OpLogs:
    """The op logs of a run: the log of each SIP, and the components to which its records refer."""

    def __init__(self) -> None:
        self.of_sips: dict[int, SipLog] = {}
        self.tracks: list[Track] = []
        self._number_of_track: dict[tuple[int, int, int, str], int] = {}
        self._pending: list[tuple[int, bytes, str]] = []
        self._record_index = RecordIndex(self._track)

    @classmethod
    def of(cls, logs: Mapping[int, Sequence[OpRecord]]) -> Self:
        """The logs with these records."""
        stored = cls()
        for sip, records in logs.items():
            stored.add(sip, encode_records(records), f"SIP {sip}")
        stored.index()
        return stored

    def add(self, sip: int, chunk: bytes, peer: str) -> None:
        """Append the next records of a SIP, encoded. Raises `ProtocolError` naming `peer`."""
        # A chunk that cannot be read ends the run now; its records are checked in `index`.
        check_list(chunk, peer)
        self._pending.append((sip, chunk, peer))

    def index(self) -> None:
        """Read the chunks that were added; what follows sees only those that were read.

        Raises `ProtocolError` naming the peer of a malformed chunk, and reads the other chunks.
        """
        # Not while the run lasts: the LPs need the cores.
        pending, self._pending = self._pending, []
        problem: ProtocolError | None = None
        for sip, chunk, peer in pending:
            try:
                self._append(sip, chunk, peer)
            except ProtocolError as error:
                problem = problem or error
        if problem is not None:
            raise problem

    def _append(self, sip: int, chunk: bytes, peer: str) -> None:
        try:
            read = self._record_index.read(sip, chunk)
        except ValueError:
            # Perhaps valid, in another form; if it is not, this names the field.
            chunk = encode_records(decode_records(chunk, peer))
            try:
                read = self._record_index.read(sip, chunk)
            except ValueError as error:
                raise ProtocolError(peer, f"records of an op log: {error}") from error
        log = self.of_sips.setdefault(sip, SipLog())
        log.firsts.append(len(log.starts_ps))
        log.chunks.append(chunk)
        for numbers, new in zip(
            (log.starts_ps, log.ends_ps, log.tracks, log.offsets), read, strict=True
        ):
            numbers.frombytes(new)

    def records(self) -> dict[int, list[OpRecord]]:
        """All records, by SIP, in the order in which they were added."""
        return {
            sip: [
                record
                for chunk in range(len(self.of_sips[sip].chunks))
                for record in self._chunk(sip, chunk)
            ]
            for sip in sorted(self.of_sips)
        }

    def spans(self) -> Iterator[Span]:
        """The records of all SIPs in the order of `(start_ps, sip, index)`."""
        # The one total order: independent of the LP from which a record came and of its arrival.
        for start_ps, sip, index in merge(*map(self._ordered, sorted(self.of_sips))):
            log = self.of_sips[sip]
            track = self.tracks[log.tracks[index]]
            yield Span(sip, index, start_ps, log.ends_ps[index], track)

    def merged(self) -> Iterator[LoggedOp]:
        """The records themselves, in the order of `spans`."""
        decoded = lru_cache(maxsize=_DECODED_CHUNKS * max(len(self.of_sips), 1))(self._chunk)
        for _, sip, index in merge(*map(self._ordered, sorted(self.of_sips))):
            firsts = self.of_sips[sip].firsts
            chunk = bisect_right(firsts, index) - 1
            yield LoggedOp(sip, index, decoded(sip, chunk)[index - firsts[chunk]])

    def _ordered(self, sip: int) -> Iterator[tuple[int, int, int]]:
        log = self.of_sips[sip]
        return ((log.starts_ps[index], sip, index) for index in log.order())

    def _chunk(self, sip: int, chunk: int) -> tuple[OpRecord, ...]:
        return decode_records(self.of_sips[sip].chunks[chunk], f"SIP {sip}")

    def _track(self, sip: int, cube: int, pe: int, engine: str) -> int:
        key = (sip, cube, pe, engine)
        number = self._number_of_track.get(key)
        if number is None:
            number = self._number_of_track[key] = len(self.tracks)
            self.tracks.append(Track(*key))
        return number
