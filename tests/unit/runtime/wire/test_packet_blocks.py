"""A run of packets is a block of words; what is no valid block is refused by field."""

from struct import pack as words

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.wire.frames import Message
from runtime.wire.packet_blocks import pack, run_of, unpack, word_limits
from runtime.wire.packets import MAX_RUN_PACKETS, PacketKind, PacketRun, TransferFlow, TransferRows
from tests.support.packets import packet_run, run_message, transfer_header
from tests.support.run_strategies import runs

WORD = 8
HEADER = transfer_header(total=3)


def test_a_block_is_the_fields_of_a_run_in_their_order() -> None:
    header = transfer_header(
        kind=PacketKind.DATA,
        source_sip=2,
        source_node=3,
        sip=4,
        node=5,
        address=6,
        tag=7,
        total=8,
        sent_ps=9,
        flow=TransferFlow(10, 11, 12),
        rows=TransferRows(13, 14, 15, 16),
        element=1,
        call="ring \u00e9",
    )
    run = PacketRun(
        number=17,
        header=header,
        ends=True,
        heads_ps=(18, 19),
        tails_ps=(20, 21),
        seqs=(22, 23),
        begins=(24, 25),
        sizes=(26, 27),
    )
    assert pack(run) == (
        words("=2q", 17, 1)
        + words("=9q", PacketKind.DATA, 2, 3, 4, 5, 6, 7, 8, 9)
        + words("=4q", 1, 10, 11, 12)
        + words("=5q", 1, 13, 14, 15, 16)
        # Seven bytes in UTF-8, and a zero.
        + words("=2q", 1, 7)
        + "ring \u00e9\0".encode()
        + words("=q", 1)
        + words("=15q", 2, 18, 19, 2, 20, 21, 2, 22, 23, 2, 24, 25, 2, 26, 27)
    )


@given(runs)
def test_a_run_that_is_packed_is_unpacked(run: PacketRun) -> None:
    assert unpack(pack(run)) == run


@given(runs, st.data())
def test_a_part_of_a_block_is_refused(run: PacketRun, data: st.DataObject) -> None:
    block = pack(run)
    part = block[: data.draw(st.integers(0, len(block) - 1))]
    with pytest.raises(ValueError, match="the block ends before it"):
        unpack(part)


PLAIN = pack(packet_run(None))
WITH_HEADER = pack(packet_run(transfer_header(call="abc")))


@pytest.mark.parametrize(
    ("block", "word", "value", "problem"),
    [
        (PLAIN, 0, -1, "field body.number: Expected `int` >= 0"),
        (PLAIN, 1, 2, "field body.header: 2 is neither 0 nor 1"),
        (PLAIN, 2, -1, "field body.ends: -1 is neither 0 nor 1"),
        (PLAIN, 3, -1, "field body.heads_ps: the block ends before it"),
        (PLAIN, 3, 1 << 62, "field body.heads_ps: the block ends before it"),
        (PLAIN, 4, -9, r"field body.heads_ps\[0\]: Expected `int` >= 0"),
        (
            PLAIN,
            6,
            (1 << 62) + 1,
            r"field body.tails_ps\[0\]: Expected `int` <= 4611686018427387904",
        ),
        (PLAIN, 10, 1 << 51, r"field body.begins\[0\]: Expected `int` <= 2251799813685247"),
        (PLAIN, 12, 0, r"field body.sizes\[0\]: Expected `int` >= 1"),
        (PLAIN, 12, 1 << 31, r"field body.sizes\[0\]: Expected `int` <= 1073741824"),
        (WITH_HEADER, 2, 6, "field body.header.kind: Invalid enum value 6"),
        (WITH_HEADER, 3, 1 << 16, "field body.header.source_sip: Expected `int` <= 65535"),
        (WITH_HEADER, 6, 1 << 20, "field body.header.node: Expected `int` <= 1048575"),
        (WITH_HEADER, 7, -1, "field body.header.address: Expected `int` >= 0"),
        (WITH_HEADER, 11, 7, "field body.header.flow: 7 is neither 0 nor 1"),
        (WITH_HEADER, 13, 12, "field body.header.element: Expected `int` <= 11"),
        (WITH_HEADER, 14, -3, "field body.header.call: the block ends before it"),
        (WITH_HEADER, 14, 2, "field body.header.call: no zeros behind the text"),
        (WITH_HEADER, 15, 0xFF, "field body.header.call: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_wrong_word_is_refused_by_field(
    block: bytes, word: int, value: int, problem: str
) -> None:
    wrong = block[: WORD * word] + words("=q", value) + block[WORD * (word + 1) :]
    assert unpack(block)
    with pytest.raises(ValueError, match=problem):
        unpack(wrong)


def test_nothing_follows_the_last_field() -> None:
    with pytest.raises(ValueError, match="field body: 8 bytes after its last field"):
        unpack(PLAIN + bytes(8))


def test_a_text_is_bounded_in_characters() -> None:
    assert unpack(pack(packet_run(transfer_header(call="\u20ac" * 1024))))
    with pytest.raises(ValueError, match=r"header\.call: Expected `str` of length <= 1024"):
        unpack(pack(packet_run(transfer_header(call="x" * 1025))))


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (packet_run(transfer_header(total=4)), "field payload: 3 bytes for a transfer WRITE of 4"),
        (
            packet_run(transfer_header(kind=PacketKind.ACK, total=3)),
            "field payload: 3 bytes for a transfer ACK of 3 bytes",
        ),
        (packet_run(None, ends=False), "payload: 3 bytes before the last packet of a transfer"),
    ],
)
def test_a_payload_is_as_long_as_its_transfer_and_comes_with_the_end_of_it(
    run: PacketRun, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        run_of(run_message(run, b"abc", source=4, target=0))


PAIR: dict[str, tuple[int, ...]] = {
    "heads_ps": (9, 9),
    "tails_ps": (1, 2),
    "seqs": (0, 3),
    "begins": (0, 1),
    "sizes": (1, 2),
}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tails_ps": (1,)}, "tails_ps: 1 entries for 2 packets"),
        ({"sizes": (1, 2, 3)}, "sizes: 3 entries for 2 packets"),
        ({"begins": ()}, "begins: 0 entries for 2 packets"),
        ({"heads_ps": (9, 8)}, "heads_ps: the packets of a transfer overtake each other"),
        ({"seqs": (0, 0)}, "seqs: the packets of a transfer are not in their order"),
    ],
)
def test_a_run_is_the_packets_of_a_transfer_in_their_order(
    change: dict[str, tuple[int, ...]], problem: str
) -> None:
    assert run_of(run_message(packet_run(HEADER, **PAIR), b"abc", source=4, target=0))
    with pytest.raises(ValueError, match=f"field body.{problem}"):
        run_of(run_message(packet_run(HEADER, **PAIR | change), b"abc", source=4, target=0))


@pytest.mark.parametrize("packets", [0, MAX_RUN_PACKETS + 1])
def test_the_length_of_a_run_is_bounded(packets: int) -> None:
    column = tuple(range(1, packets + 1))
    run = packet_run(None, **dict.fromkeys(PAIR, column))
    with pytest.raises(ValueError, match=f"{packets:,} packets, a run has 1 to 16,384"):
        run_of(Message(1, 4, 0, 1, pack(run)))


@pytest.mark.parametrize("first", [{"heads_ps": (8,)}, {"seqs": (1,)}])
def test_a_message_has_the_time_and_the_number_of_its_first_packet(
    first: dict[str, tuple[int, ...]],
) -> None:
    message = Message(9, 4, 0, 0, pack(packet_run(HEADER, **first)))
    with pytest.raises(ValueError, match="the first packet has another time or number"):
        run_of(message)


def test_the_limits_of_words_are_those_of_the_structs() -> None:
    limits = word_limits()
    assert limits["columns"][4] == (1, 1 << 30)
    assert limits["header"][1:3] == [(0, (1 << 16) - 1), (0, (1 << 20) - 1)]
    assert (len(limits["header"]), len(limits["flow"]), len(limits["rows"])) == (9, 3, 4)
    assert (limits["call"], limits["packets"]) == (1024, MAX_RUN_PACKETS)
