"""Messages in pieces: every message arrives, and one that is too long is refused by field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.bench_registry import BenchOutcome, Column, Table, TableRow
from runtime.core.errors import ProtocolError
from runtime.core.program_ranges import MOST_RANGES, ProgramRange
from runtime.wire.codec import decode_from_lp
from runtime.wire.control import Done, Failed, FromLp, MessagePiece, Status
from runtime.wire.fields import (
    CHUNK_BYTES,
    LONGEST_TEXT_BYTES,
    MAX_CONTROL_BYTES,
    MAX_JOINED_BYTES,
)
from runtime.wire.pieces import MessageSizeError, PieceJoiner, cut_text, encoded_messages
from runtime.wire.reports import SipReport

PEER = "LP 3"


def done(outcome: BenchOutcome | None = None, ranges: tuple[ProgramRange, ...] = ()) -> Done:
    report = SipReport(
        sip=3,
        digest="d",
        time_ps=1,
        finished=True,
        outcome=outcome,
        counters={"bytes": 64},
        blocked=(),
        waiting_for="",
        ranges=ranges,
    )
    return Done(
        lp=3,
        sips=(report,),
        events=1,
        rounds=1,
        messages=0,
        null_messages=0,
        blocked_s=0.0,
        busy_s=0.0,
    )


def table(rows: int, width: int) -> BenchOutcome:
    text = "r" * width
    return BenchOutcome(
        label="rows",
        ok=1,
        wrong=0,
        table=Table(
            (Column("row", ""),),
            (Column("value", "B"),),
            tuple(TableRow((text, row), row, (row,)) for row in range(rows)),
        ),
    )


def received(joiner: PieceJoiner[FromLp], data: bytes) -> FromLp | None:
    return joiner.joined(decode_from_lp(data, PEER), PEER)


@pytest.mark.parametrize(
    "message",
    [
        done(table(5_000, 4_000)),
        done(ranges=tuple(ProgramRange("…" * 200, n, n + 1) for n in range(MOST_RANGES))),
    ],
    ids=["table", "ranges"],
)
def test_a_report_beyond_the_limit_of_the_socket_arrives_in_pieces(message: Done) -> None:
    sent = list(encoded_messages(3, message))
    assert len(sent) > 1
    assert max(map(len, sent)) <= CHUNK_BYTES + 100 < MAX_CONTROL_BYTES
    joiner = PieceJoiner(decode_from_lp)
    assert [received(joiner, data) for data in sent] == [None] * (len(sent) - 1) + [message]


def test_a_message_within_the_limit_is_sent_whole() -> None:
    [data] = encoded_messages(3, done())
    assert decode_from_lp(data, PEER) == done()


def test_a_message_that_is_too_long_in_pieces_is_refused_by_its_largest_field() -> None:
    message = done(table(5_000, 4_000))
    with pytest.raises(
        MessageSizeError,
        match=r"a message Done of 20,\d{3},\d{3} bytes, the limit is 20,000,000; its largest field "
        r"is sips\[0\]\.outcome\.table\.rows, 20,\d{3},\d{3} bytes",
    ):
        list(encoded_messages(3, message, 20_000_000))


def test_no_other_message_comes_between_the_pieces_of_one() -> None:
    joiner = PieceJoiner(decode_from_lp)
    assert joiner.joined(MessagePiece(3, b"\x91", last=False), PEER) is None
    with pytest.raises(ProtocolError, match="LP 3: Status between pieces of a message"):
        joiner.joined(Status(3, 1, 1, 0.0), PEER)


def test_pieces_without_an_end_are_refused_at_the_limit() -> None:
    joiner = PieceJoiner(decode_from_lp)
    piece = MessagePiece(3, bytes(CHUNK_BYTES), last=False)
    for _ in range(MAX_JOINED_BYTES // CHUNK_BYTES):
        assert joiner.joined(piece, PEER) is None
    with pytest.raises(ProtocolError, match="more than 268,435,456 bytes, the limit"):
        joiner.joined(piece, PEER)


def test_pieces_of_a_malformed_message_name_their_sender() -> None:
    with pytest.raises(ProtocolError, match="from LP 3: malformed message"):
        PieceJoiner(decode_from_lp).joined(MessagePiece(3, b"\xc1", last=True), PEER)


@given(st.text(st.characters(codec="utf-8"), max_size=50))
def test_a_short_text_is_kept(text: str) -> None:
    assert cut_text(text) == text


@pytest.mark.parametrize("character", ["x", "é", "…", "𝄞"])
def test_a_long_text_is_cut_with_a_note_and_crosses(character: str) -> None:
    text = cut_text("a" + character * 20_000_000)
    most = f" … [cut: {len(character.encode()) * 20_000_000 + 1 - LONGEST_TEXT_BYTES:,} more bytes]"
    assert text.startswith("a" + character)
    assert text.endswith(character + most)
    assert len(text.encode()) <= LONGEST_TEXT_BYTES + len(most.encode())
    failed = Failed(lp=3, rank=3, error="E", message=text, traceback=text, time_ps=0)
    [data] = encoded_messages(3, failed)
    assert decode_from_lp(data, PEER) == failed


def test_a_text_with_half_of_a_pair_of_surrogates_crosses() -> None:
    text = cut_text("a\udcffb")
    assert text == "a\\udcffb"
    failed = Failed(lp=3, rank=3, error="E", message=text, traceback="", time_ps=0)
    assert len(list(encoded_messages(3, failed))) == 1
