"""The bytes between processes: plain MessagePack that any implementation reads, and every error
names its sender.
"""

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.errors import ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.model.addresses import ADDRESS_BITS, MAX_SIPS
from runtime.wire import fields
from runtime.wire.codec import (
    PeerDecoder,
    decode_from_lp,
    encode_control,
    encode_peer,
)
from runtime.wire.control import (
    Written,
)
from runtime.wire.frames import Frame, Grant, Message, PeerContent, SilenceReport
from runtime.wire.packets import CARRIERS, PacketFlow, PacketHeader, PacketKind, PacketRows
from tests.support.packets import packet_header

times = st.integers(0, NEVER_PS)
counts = st.integers(0, 2**63 - 1)
sips = st.integers(0, MAX_SIPS - 1)
offsets = st.integers(0, 2**ADDRESS_BITS - 1)
headers = st.builds(
    PacketHeader,
    kind=st.sampled_from(sorted(set(PacketKind) - CARRIERS)),
    source_sip=sips,
    source_node=sips,
    sip=sips,
    node=sips,
    size=st.integers(1, 1 << 30),
    address=offsets,
    tag=counts,
    total=offsets,
    last=st.booleans(),
    sent_ps=times,
    tail_ps=times,
    flow=st.none() | st.builds(PacketFlow, sips, sips, counts),
    rows=st.none()
    | st.builds(PacketRows, st.integers(1, 1 << 40), offsets, st.integers(0, 1 << 40), offsets),
    begin=offsets,
    element=st.integers(0, 9),
    call=st.text(max_size=20),
)
messages = st.builds(
    Message,
    time_ps=times,
    source=st.sampled_from([4, 5]),
    target=st.sampled_from([0, 1]),
    seq=counts,
    body=st.none() | headers,
)
frames = st.builds(
    Frame,
    st.lists(times, min_size=1, max_size=3).map(sorted).map(tuple),
    st.integers(0, 9),
    st.lists(messages, max_size=4).map(tuple),
)
contents = (
    frames
    | st.builds(SilenceReport, times, st.just((0, 3)), st.just((1, 2)))
    | st.builds(Grant, times)
)
LP_OF = (1, 1, 0, 0, 3, 3, 2)
"""SIP -> LP: LP 3 sends from SIPs 4 and 5 to SIPs 0 and 1 on LP 1."""


def decoder(run_id: str = "run") -> PeerDecoder:
    """The decoder of LP 1."""
    return PeerDecoder(run_id, 1, LP_OF, lambda body: "")


def header(**changes: Any) -> PacketHeader:
    """A packet with 3 bytes for a memory of SIP 0, from SIP 4."""
    return packet_header(**{"source_sip": 4, "sip": 0, "size": 3, "total": 3} | changes)


def sent(message: Message, lp: int = 3) -> tuple[bytes, bytes]:
    return encode_peer("run", lp, Frame((5,), 0, (message,)))


@given(contents)
def test_the_content_that_an_lp_sends_is_the_content_that_its_peer_receives(
    content: PeerContent,
) -> None:
    assert decoder().decode(*encode_peer("run", 3, content)) == (3, content)


@given(frames)
def test_a_frame_is_messagepack_with_the_payloads_in_a_separate_part(frame: Frame) -> None:
    encoded, payload = encode_peer("run", 3, frame)
    run_id, lp, (tag, promises_ps, null_hops, rows) = msgpack.unpackb(encoded)
    assert (run_id, lp, tag, null_hops) == ("run", 3, "FrameHeader", frame.null_hops)
    assert tuple(promises_ps) == frame.promises_ps
    assert [tuple(row[:4]) for row in rows] == [
        (m.time_ps, m.source, m.target, m.seq) for m in frame.messages
    ]
    assert [row[4] is None for row in rows] == [m.body is None for m in frame.messages]
    assert payload == b"".join(bytes(m.payload) for m in frame.messages)


@given(st.sampled_from(sorted(CARRIERS)), st.lists(st.binary(min_size=1, max_size=9), max_size=4))
def test_every_message_gets_its_own_payload(kind: PacketKind, payloads: list[bytes]) -> None:
    messages = tuple(
        Message(
            time_ps=9,
            source=4,
            target=0,
            seq=seq,
            body=header(kind=kind, size=len(payload), total=len(payload)),
            payload=payload,
        )
        for seq, payload in enumerate(payloads)
    )
    _, frame = decoder().decode(*encode_peer("run", 3, Frame((5,), 0, messages)))
    assert isinstance(frame, Frame)
    assert [bytes(message.payload) for message in frame.messages] == payloads


WRONG_FIELDS = [
    ([2, -1], r"field messages\[0\]\.target: Expected `int` >= 0"),
    ([0, -1], r"field messages\[0\]\.time_ps: Expected `int` >= 0"),
    ([0, NEVER_PS + 1], r"field messages\[0\]\.time_ps: Expected `int` <= 4611686018427387904"),
    ([3, True], r"field messages\[0\]\.seq: Expected `int`, got `bool`"),
    ([3, 1.0], r"field messages\[0\]\.seq: Expected `int`, got `float`"),
    ([3, 2**64 - 1], r"field messages\[0\]\.seq: Expected `int` <= 9223372036854775807"),
    ([5, -3], r"field messages\[0\]\.payload_bytes: Expected `int` >= 0"),
    ([4, 0, 6], r"field messages\[0\]\.body\.kind: Invalid enum value 6"),
    ([4, 0, 0], r"field messages\[0\]\.body\.kind: Invalid enum value 0"),
    ([4, 1, -1], r"field messages\[0\]\.body\.source_sip: Expected `int` >= 0"),
    ([4, 4, 2**20], r"field messages\[0\]\.body\.node: Expected `int` <= 1048575"),
    ([4, 5, 0], r"field messages\[0\]\.body\.size: Expected `int` >= 1"),
    ([4, 5, 2**31], r"field messages\[0\]\.body\.size: Expected `int` <= 1073741824"),
    ([4, 6, 2**51], r"field messages\[0\]\.body\.address: Expected `int` <= 2251799813685247"),
    ([4, 9, 1], r"field messages\[0\]\.body\.last: Expected `bool`, got `int`"),
    ([4, 10, float("nan")], r"field messages\[0\]\.body\.sent_ps: Expected `int`, got `float`"),
    ([4, 12, [0, 1, -2]], r"field messages\[0\]\.body\.flow\.number: Expected `int` >= 0"),
    ([4, 13, [0, 1, 0, 0]], r"field messages\[0\]\.body\.rows\.row_bytes: Expected `int` >= 1"),
    ([4, 15, 10], r"field messages\[0\]\.body\.element: Expected `int` <= 9"),
    ([4, 16, "x" * 1025], r"field messages\[0\]\.body\.call: Expected `str` of length <= 1024"),
    ([4, 16, b"bytes"], r"field messages\[0\]\.body\.call: Expected `str`, got `bytes`"),
]


@pytest.mark.parametrize(("change", "problem"), WRONG_FIELDS, ids=[p for _, p in WRONG_FIELDS])
def test_a_wrong_field_of_a_message_is_named_with_the_lp_that_sent_it(
    change: list[Any], problem: str
) -> None:
    encoded, payload = sent(
        Message(time_ps=9, source=4, target=0, seq=0, body=header(), payload=b"abc")
    )
    content = msgpack.unpackb(encoded)
    *path, value = change
    place = content[2][3][0]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ProtocolError, match=f"from LP 3: malformed message: {problem}") as raised:
        decoder().decode(msgpack.packb(content), payload)
    assert raised.value.peer == "LP 3"


@pytest.mark.parametrize("body", [[1] * 16, [1] * 18, {}, 7, "packet"])
def test_a_packet_of_a_wrong_length_or_shape_is_refused(body: object) -> None:
    content = ["run", 3, ["FrameHeader", [5], 0, [[9, 4, 0, 0, body, 0]]]]
    with pytest.raises(ProtocolError, match=r"LP 3: malformed message: field messages\[0\]\.body"):
        decoder().decode(msgpack.packb(content), b"")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (["Grunt", 5], "field tag: Invalid value 'Grunt'"),
        ([5, 5], "field tag: Expected `str`, got `int`"),
        (["Grant"], "Expected `array` of at least length 2, got 1"),
        (["Grant", 5, 6], "Expected `array` of at most length 1, got 2"),
        (["Grant", -1], "field lbts_ps: Expected `int` >= 0"),
        (["SilenceReport", 5, [0, -1], [0, 0]], r"field sent\[1\]: Expected `int` >= 0"),
        (["FrameHeader", [], 0, []], "a frame without a promise"),
        (["FrameHeader", [5, 4], 0, []], "field promises_ps: they decrease with the hops"),
        (["FrameHeader", [5, -5], 0, []], r"field promises_ps\[1\]: Expected `int` >= 0"),
        (["FrameHeader", [5], -1, []], "field null_hops: Expected `int` >= 0"),
        (["FrameHeader", [5], 0, {}], "field messages: Expected `array`, got `object`"),
        (None, "Expected `array`, got `None`"),
    ],
)
def test_wrong_content_is_refused_and_names_the_lp_that_sent_it(
    content: object, problem: str
) -> None:
    with pytest.raises(ProtocolError, match=f"from LP 3: .*{problem}"):
        decoder().decode(msgpack.packb(["run", 3, content]), b"")


@pytest.mark.parametrize(
    ("source", "target", "problem"),
    [
        (0, 1, "field source: 0 is not on LP 3"),
        (7, 0, "field source: 7 is not on LP 3"),
        (4, 5, "field target: 5 is not on LP 1"),
        (4, 7, "field target: 7 is not on LP 1"),
    ],
)
def test_an_lp_sends_for_its_own_sips_to_those_of_the_receiver(
    source: int, target: int, problem: str
) -> None:
    with pytest.raises(ProtocolError, match=f"LP 3: message 0 of a frame: {problem}"):
        decoder().decode(*sent(Message(9, source, target, 0)))


@pytest.mark.parametrize(
    ("lp", "problem"),
    [
        (4, "an unknown process: it sends as LP 4 to LP 1, the run has 4 LPs"),
        (1, "an unknown process: it sends as LP 1 to LP 1"),
        (-1, "an unknown process: malformed message: field lp: Expected `int` >= 0"),
        (2**16, "an unknown process: malformed message: field lp: Expected `int` <= 65535"),
        (True, "an unknown process: malformed message: field lp: Expected `int`, got `bool`"),
        ("3", "an unknown process: malformed message: field lp: Expected `int`, got `str`"),
    ],
)
def test_a_sender_that_is_no_other_lp_of_the_run_is_unknown(lp: object, problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        decoder().decode(msgpack.packb(["run", lp, ["Grant", 5]]), b"")


def test_another_run_is_refused() -> None:
    with pytest.raises(ProtocolError, match="unknown process: it sends as LP 3 of another run"):
        decoder("other").decode(*sent(Message(9, 4, 0, 0)))


@pytest.mark.parametrize("payload", [b"", b"ab", b"abcd"])
def test_a_payload_of_another_length_than_announced_is_refused(payload: bytes) -> None:
    encoded, _ = sent(Message(time_ps=9, source=4, target=0, seq=0, body=header(), payload=b"abc"))
    with pytest.raises(
        ProtocolError, match=f"LP 3: .* announce 3 payload bytes, {len(payload)} came"
    ):
        decoder().decode(encoded, payload)


def test_a_grant_has_no_payload() -> None:
    encoded, _ = encode_peer("run", 3, Grant(5))
    with pytest.raises(ProtocolError, match="LP 3: 1 payload bytes without a frame"):
        decoder().decode(encoded, b"x")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (header(size=4, total=4), "3 in the last packet of a WRITE of 4 bytes"),
        (header(kind=PacketKind.ACK), "3 in the last packet of a ACK of 3 bytes"),
        (header(last=False), "3 in a packet before the last of a WRITE of 3 bytes"),
        (None, "3 without a packet"),
    ],
)
def test_a_payload_is_as_long_as_its_transfer_and_of_a_kind_that_carries_one(
    body: PacketHeader | None, problem: str
) -> None:
    with pytest.raises(ProtocolError, match=f"LP 3: .*field payload_bytes: {problem}"):
        decoder().decode(
            *sent(Message(time_ps=9, source=4, target=0, seq=0, body=body, payload=b"abc"))
        )


def test_a_packet_which_breaks_a_rule_of_the_model_is_the_fault_of_its_sender() -> None:
    strict = PeerDecoder("run", 1, LP_OF, lambda body: "field node: 8 is no memory")
    with pytest.raises(
        ProtocolError, match="LP 3: message 0 of a frame: field node: 8 is no memory"
    ):
        strict.decode(
            *sent(Message(time_ps=9, source=4, target=0, seq=0, body=header(), payload=b"abc"))
        )


def test_a_run_without_chips_has_no_packets() -> None:
    phold = PeerDecoder("run", 1, LP_OF)
    assert phold.decode(*sent(Message(9, 4, 0, 0)))[0] == 3
    with pytest.raises(ProtocolError, match=r"LP 3: .*a packet in a run without chips"):
        phold.decode(
            *sent(Message(time_ps=9, source=4, target=0, seq=0, body=header(), payload=b"abc"))
        )


def test_the_sender_is_read_from_the_header_alone() -> None:
    assert decoder().sender(encode_peer("run", 3, Grant(5))[0]) == "LP 3"
    for stranger in (b"\xc1", encode_peer("other", 3, Grant(5))[0]):
        assert decoder().sender(stranger) == "an unknown process"


def test_the_ranges_of_the_wire_are_those_of_the_machine() -> None:
    assert fields.ADDRESS_BITS == ADDRESS_BITS
    with pytest.raises(ProtocolError):
        decode_from_lp(encode_control(Written(0, 1 << 16, b"")), "LP 0")
    assert decode_from_lp(encode_control(Written(0, MAX_SIPS - 1, b"")), "LP 0")
