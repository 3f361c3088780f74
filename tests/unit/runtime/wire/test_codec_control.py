"""Control messages: encoding, limits, and refusal of wrong fields."""

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.errors import ProtocolError
from runtime.core.trace import Operand, OpRecord
from runtime.wire.codec import (
    PeerDecoder,
    decode_from_coordinator,
    decode_from_lp,
    decode_records,
    encode_control,
    encode_records,
)
from runtime.wire.control import (
    Abort,
    Done,
    Failed,
    Hello,
    MemoryContents,
    Peers,
    RecordChunk,
    Status,
    TraceChunk,
    Written,
)
from runtime.wire.fields import CHUNK_BYTES, CHUNK_TEXTS, TEXT_LENGTH


def test_a_control_message_is_a_flat_array_with_its_name_first() -> None:
    encoded = encode_control(
        Hello(protocol=1, run_id="run", lp=2, pid=4711, endpoint="ipc:///tmp/x")
    )
    assert msgpack.unpackb(encoded) == ["Hello", 1, "run", 2, 4711, "ipc:///tmp/x", [], None, ""]
    assert decode_from_lp(msgpack.packb(["Status", 0, 5, 7, 0.5]), "LP 0") == Status(
        lp=0, time_ps=5, events=7, blocked_s=0.5
    )


@given(st.binary(max_size=200))
def test_random_bytes_are_a_protocol_error_and_never_another_error(data: bytes) -> None:
    for decode in (decode_from_lp, decode_from_coordinator, decode_records):
        with suppress(ProtocolError):
            assert encode_control(decode(data, "LP 7")), "by chance they were a message"
    of_peers = PeerDecoder(1, (1, 0), lambda message: "")
    with suppress(ProtocolError):
        of_peers.decode(data)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (["Status", 0, 5, 7], "Expected `array` of at least length 5, got 4"),
        (
            ["Status", 0, 5, 7, 0.5, 1, 2, 3, [], None, 0],
            "Expected `array` of at most length 9, got 10",
        ),
        (["Status", 0, "five", 7, 0.5], "field time_ps: Expected `int`, got `str`"),
        (["Status", -1, 5, 7, 0.5], "field lp: Expected `int` >= 0"),
        (["Status", 0, 5, 7, float("nan")], "field blocked_s: Expected `float` >= 0"),
        (["Status", 0, 5, 7, 0.5, 5, 5, -2], "field waits_for: Expected `int` >= -1"),
        (["Stat", 0, 5, 7, 0.5], "field tag: Invalid value 'Stat'"),
        ({"lp": 0}, "Expected `array`, got `object`"),
        (None, "Expected `array`, got `None`"),
    ],
)
def test_a_wrong_control_message_is_refused_by_field(content: object, problem: str) -> None:
    with pytest.raises(
        ProtocolError, match=f"protocol error from LP 0: malformed message: {problem}"
    ):
        decode_from_lp(msgpack.packb(content), "LP 0")


def test_a_hello_of_an_older_protocol_is_decoded_so_that_its_version_can_be_refused() -> None:
    older = ["Hello", 4, "run", 2, 4711, "ipc:///tmp/x"]
    assert decode_from_lp(msgpack.packb(older), "an LP") == Hello(
        protocol=4, run_id="run", lp=2, pid=4711, endpoint="ipc:///tmp/x", code=()
    )


def test_the_code_of_an_lp_is_named_by_its_position() -> None:
    hello = ["Hello", 5, "run", 2, 4711, "ipc:///tmp/x", [["m", "m.py", "00"], ["n", 7, "00"]]]
    with pytest.raises(ProtocolError, match=r"field code\[1\]\.file: Expected `str`"):
        decode_from_lp(msgpack.packb(hello), "LP 2")


def test_a_wrong_report_of_one_sip_is_named_by_its_position() -> None:
    done = msgpack.unpackb(
        encode_control(
            Done(
                lp=0,
                sips=(),
                events=1,
                rounds=1,
                messages=0,
                null_messages=0,
                blocked_s=0.0,
                busy_s=0.0,
            )
        )
    )
    done[2] = [[0, "digest", -7, True, None, {}, [], "", "", []]]
    with pytest.raises(ProtocolError, match=r"field sips\[0\]\.time_ps: Expected `int` >= 0"):
        decode_from_lp(msgpack.packb(done), "LP 0")


def test_a_message_for_the_other_direction_is_refused() -> None:
    with pytest.raises(ProtocolError, match="malformed"):
        decode_from_lp(encode_control(Abort("stop")), "LP 0")
    with pytest.raises(ProtocolError, match="malformed"):
        decode_from_coordinator(
            encode_control(Failed(lp=0, rank=0, error="", message="", traceback="", time_ps=0)),
            "the coordinator",
        )


def test_the_peers_of_a_run_have_numbers_in_range() -> None:
    peers = [
        "Peers",
        0,
        ["ipc://x"],
        [0],
        [""],
        [[-1]],
        [b"", b"", "", "", {}, [], True, True, 0, 0.0],
    ]
    with pytest.raises(ProtocolError, match=r"field sips_of_lp\[0\]\[0\]: Expected `int` >= 0"):
        decode_from_coordinator(msgpack.packb(peers), "the coordinator")
    peers[5] = [[0]]
    assert isinstance(decode_from_coordinator(msgpack.packb(peers), "the coordinator"), Peers)


def test_bytes_of_memories_are_raw_and_of_a_bounded_number() -> None:
    encoded = encode_control(MemoryContents(0, 3, 1 << 50, b"abc"))
    assert msgpack.unpackb(encoded) == ["MemoryContents", 0, 3, 1 << 50, b"abc"]
    whole = Written(0, 3, bytes(CHUNK_BYTES))
    assert decode_from_lp(encode_control(whole), "LP 0") == whole
    for message in (
        Written(0, 3, bytes(CHUNK_BYTES + 1)),
        MemoryContents(0, 3, 0, bytes(CHUNK_BYTES + 1)),
    ):
        with pytest.raises(ProtocolError, match=f"field data: .*length <= {CHUNK_BYTES}"):
            decode_from_lp(encode_control(message), "LP 0")


def test_rows_of_a_table_are_raw_and_they_and_their_texts_are_bounded() -> None:
    encoded = encode_control(RecordChunk(0, 3, "links", b"abc", ("", "load")))
    assert msgpack.unpackb(encoded) == ["RecordChunk", 0, 3, "links", b"abc", ["", "load"]]
    whole = RecordChunk(0, 3, "ops", bytes(CHUNK_BYTES), ("x" * TEXT_LENGTH,) * CHUNK_TEXTS)
    assert decode_from_lp(encode_control(whole), "LP 0") == whole
    for message, field in (
        (RecordChunk(0, 3, "ops", bytes(CHUNK_BYTES + 1), ()), "rows"),
        (RecordChunk(0, 3, "ops", b"", ("x",) * (CHUNK_TEXTS + 1)), "texts"),
        (RecordChunk(0, 3, "ops", b"", ("x" * (TEXT_LENGTH + 1),)), r"texts\[0\]"),
        (RecordChunk(0, 3, "x" * (TEXT_LENGTH + 1), b"", ()), "table"),
    ):
        with pytest.raises(ProtocolError, match=f"LP 0.*field {field}: "):
            decode_from_lp(encode_control(message), "LP 0")


def test_a_message_beyond_the_limit_is_refused_before_it_is_decoded() -> None:
    chunk = encode_control(TraceChunk(0, 0, bytes(16 << 20)))
    with pytest.raises(ProtocolError, match=r"LP 0: message of 16,777,\d+ bytes, the limit is"):
        decode_from_lp(chunk, "LP 0")


def test_op_records_survive_the_crossing() -> None:
    operand = Operand(1 << 50, (3, 4), "bf16", (8, 1))
    records = (
        OpRecord(
            engine="pe_dma",
            name="load",
            start_ps=1,
            end_ps=2,
            cube=3,
            pe=4,
            address=5,
            nbytes=6,
            shape=(7, 8),
            dtype="f16",
            flow=(0, 1, 2),
            flow_end=True,
            inputs=(operand, 2.5),
            strides=(9, 1),
            axis=0,
            checksum=2**32 - 1,
        ),
        OpRecord(engine="host", name="x", start_ps=0, end_ps=0),
    )
    assert decode_records(encode_records(records), "LP 0") == records
