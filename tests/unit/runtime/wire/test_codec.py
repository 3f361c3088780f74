"""The bytes between processes: plain MessagePack that any other implementation reads, and nothing else is believed."""

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.errors import ProtocolError
from runtime.core.trace import Operand, OpRecord
from runtime.wire.codec import (
    decode_from_coordinator,
    decode_from_lp,
    decode_peer,
    decode_records,
    encode_control,
    encode_peer,
    encode_records,
)
from runtime.wire.messages import (
    CHUNK_BYTES,
    Abort,
    Frame,
    Grant,
    Hello,
    MemoryContents,
    Message,
    PeerContent,
    SilenceReport,
    Status,
    Written,
)

times = st.integers(0, 2**62)
messages = st.builds(
    Message,
    times,
    st.integers(0, 255),
    st.integers(0, 255),
    st.integers(0, 2**40),
    st.lists(st.integers(-(2**51), 2**51)).map(tuple),
    st.binary(max_size=40),
)
frames = st.builds(
    Frame,
    times,
    st.integers(0, 9),
    st.lists(messages, max_size=4).map(tuple),
    st.lists(times, max_size=3).map(tuple),
)
contents = (
    frames
    | st.builds(SilenceReport, times, st.just((0, 3)), st.just((1, 2)))
    | st.builds(Grant, times)
)


@given(contents)
def test_what_an_lp_says_is_what_its_peer_hears(content: PeerContent) -> None:
    assert decode_peer(*encode_peer("run", 3, content), "run") == (3, content)


@given(frames)
def test_a_frame_is_messagepack_with_the_payloads_in_a_part_of_their_own(frame: Frame) -> None:
    header, payload = encode_peer("run", 3, frame)
    run_id, lp, (tag, promise_ps, null_hops, headers, transit_ps) = msgpack.unpackb(
        header, strict_map_key=False
    )
    assert (run_id, lp, tag, promise_ps, null_hops) == (
        "run",
        3,
        "FrameHeader",
        frame.promise_ps,
        frame.null_hops,
    )
    assert tuple(transit_ps) == frame.transit_ps
    assert [tuple(each[:4]) for each in headers] == [
        (m.time_ps, m.source, m.target, m.seq) for m in frame.messages
    ]
    assert payload == b"".join(bytes(m.payload) for m in frame.messages)


def test_a_control_message_is_a_flat_array_with_its_name_first() -> None:
    encoded = encode_control(Hello(1, "run", 2, 4711, "ipc:///tmp/x"))
    assert msgpack.unpackb(encoded) == ["Hello", 1, "run", 2, 4711, "ipc:///tmp/x"]
    assert decode_from_lp(msgpack.packb(["Status", 0, 5, 7, 0.5]), "LP 0") == Status(0, 5, 7, 0.5)


@given(st.binary(max_size=200))
def test_random_bytes_are_a_protocol_error_and_never_another_one(data: bytes) -> None:
    for decode in (decode_from_lp, decode_from_coordinator, decode_records):
        with suppress(ProtocolError):
            assert encode_control(decode(data, "LP 7")), "by chance they were a message"


@pytest.mark.parametrize(
    "content",
    [
        ["Status", 0, 5, 7],
        ["Status", 0, 5, 7, 0.5, "more"],
        ["Status", 0, "five", 7, 0.5],
        ["Stat", 0, 5, 7, 0.5],
        {"lp": 0},
        None,
    ],
)
def test_a_wrong_number_of_fields_or_a_wrong_type_is_refused(content: object) -> None:
    with pytest.raises(ProtocolError, match="malformed message"):
        decode_from_lp(msgpack.packb(content), "LP 0")


def test_a_message_for_the_other_direction_is_refused() -> None:
    with pytest.raises(ProtocolError, match="malformed"):
        decode_from_lp(encode_control(Abort("stop")), "LP 0")


def test_another_run_and_a_wrong_number_of_payload_bytes_are_refused() -> None:
    header, payload = encode_peer("run", 3, Frame(5, 0, (Message(9, 0, 1, 0, (), b"abc"),)))
    with pytest.raises(ProtocolError, match="another run"):
        decode_peer(header, payload, "other")
    with pytest.raises(ProtocolError, match="announce 3 payload bytes, 2 came"):
        decode_peer(header, payload[:2], "run")


def test_bytes_of_memories_are_raw_and_of_a_bounded_number() -> None:
    encoded = encode_control(MemoryContents(0, 3, 1 << 50, b"abc"))
    assert msgpack.unpackb(encoded) == ["MemoryContents", 0, 3, 1 << 50, b"abc"]
    whole = Written(0, 3, bytes(CHUNK_BYTES))
    assert decode_from_lp(encode_control(whole), "LP 0") == whole
    for message in (
        Written(0, 3, bytes(CHUNK_BYTES + 1)),
        MemoryContents(0, 3, 0, bytes(CHUNK_BYTES + 1)),
    ):
        with pytest.raises(ProtocolError, match=f"length <= {CHUNK_BYTES}"):
            decode_from_lp(encode_control(message), "LP 0")


def test_op_records_survive_the_way() -> None:
    operand = Operand(1 << 50, (3, 4), "bf16", (8, 1))
    records = (
        OpRecord(
            "pe_dma",
            "load",
            1,
            2,
            3,
            4,
            5,
            6,
            (7, 8),
            "f16",
            (0, 1, 2),
            True,
            (operand, 2.5),
            (9, 1),
            0,
            2**32 - 1,
        ),
        OpRecord("host", "x", 0, 0),
    )
    assert decode_records(encode_records(records), "LP 0") == records
