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
from runtime.model.addresses import MAX_SIPS, WIDE_ADDRESS_BITS
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
from runtime.wire.frames import (
    Call,
    Envelope,
    Frame,
    Grant,
    Message,
    PairCount,
    PeerContent,
    SilenceReport,
)

times = st.integers(0, NEVER_PS)
counts = st.integers(0, 2**63 - 1)
entities = {"source": st.sampled_from([4, 5]), "target": st.sampled_from([0, 1])}
messages = st.builds(
    Message,
    time_ps=times,
    seq=counts,
    body=st.binary(max_size=9),
    payload=st.binary(max_size=9),
    **entities,
)
frames = st.builds(
    Frame,
    st.lists(times, min_size=1, max_size=3).map(sorted).map(tuple),
    st.integers(0, 9),
    st.lists(messages, max_size=3).map(tuple),
)
pair_counts = st.lists(
    st.builds(PairCount, st.integers(0, 3), st.integers(0, 3), st.integers(1, 9)), max_size=3
).map(tuple)
contents = (
    frames
    | st.builds(
        SilenceReport, st.integers(0, 9), times, times, st.booleans(), pair_counts, pair_counts
    )
    | st.builds(Grant, times, st.booleans())
    | st.just(Call())
)
LP_OF = (1, 1, 0, 0, 3, 3, 2)
"""SIP -> LP: LP 3 sends from SIPs 4 and 5 to SIPs 0 and 1 on LP 1."""


def decoder() -> PeerDecoder:
    """The decoder of LP 1."""
    return PeerDecoder(1, LP_OF, lambda message: "")


def sent(message: Message, lp: int = 3, number: int = 0) -> bytes:
    return encode_peer(lp, number, Frame((5,), 0, (message,)))


@given(contents)
def test_the_content_that_an_lp_sends_is_the_content_that_its_peer_receives(
    content: PeerContent,
) -> None:
    assert decoder().decode(encode_peer(3, 0, content, 8, 9)) == Envelope(3, 0, 8, content, 9)


@given(frames)
def test_a_frame_is_messagepack(frame: Frame) -> None:
    lp, number, _, (tag, promises_ps, null_hops, rows), _ = msgpack.unpackb(
        encode_peer(3, 7, frame)
    )
    assert (lp, number, tag, null_hops) == (3, 7, "Frame", frame.null_hops)
    assert tuple(promises_ps) == frame.promises_ps
    assert [tuple(row) for row in rows] == [
        (m.time_ps, m.source, m.target, m.seq, m.body, m.payload) for m in frame.messages
    ]


WRONG_FIELDS = [
    ([2, -1], r"field messages\[0\]\.target: Expected `int` >= 0"),
    ([0, -1], r"field messages\[0\]\.time_ps: Expected `int` >= 0"),
    ([0, NEVER_PS + 1], r"field messages\[0\]\.time_ps: Expected `int` <= 4611686018427387904"),
    ([3, True], r"field messages\[0\]\.seq: Expected `int`, got `bool`"),
    ([3, 1.0], r"field messages\[0\]\.seq: Expected `int`, got `float`"),
    ([3, 2**64 - 1], r"field messages\[0\]\.seq: Expected `int` <= 9223372036854775807"),
    ([4, [1]], r"field messages\[0\]\.body: Expected `bytes`, got `array`"),
    ([5, 7], r"field messages\[0\]\.payload: Expected `bytes`, got `int`"),
]


@pytest.mark.parametrize(("change", "problem"), WRONG_FIELDS, ids=[p for _, p in WRONG_FIELDS])
def test_a_wrong_field_of_a_message_is_named_with_the_lp_that_sent_it(
    change: list[Any], problem: str
) -> None:
    content = msgpack.unpackb(sent(Message(9, 4, 0, 0, b"block", b"abc")))
    field, value = change
    content[3][3][0][field] = value
    with pytest.raises(ProtocolError, match=f"from LP 3: malformed message: {problem}") as raised:
        decoder().decode(msgpack.packb(content))
    assert raised.value.peer == "LP 3"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (["Grunt", 5], "field tag: Invalid value 'Grunt'"),
        ([5, 5], "field tag: Expected `str`, got `int`"),
        (["Grant"], "Expected `array` of at least length 3, got 1"),
        (["Grant", 5, True, 6], "Expected `array` of at most length 2, got 3"),
        (["Grant", -1, True], "field lbts_ps: Expected `int` >= 0"),
        (["Call", 5], "Expected `array` of at most length 0, got 1"),
        (
            ["SilenceReport", 0, 5, 5, True, [[1, 0, 1], [1, 2, 0]], []],
            r"field sent\[1\].messages: Expected `int` >= 1",
        ),
        (
            ["SilenceReport", 0, 5, 5, True, [], [0] * (2**20 + 1)],
            "field received: .* length <= 1048576",
        ),
        (["Frame", [], 0, []], "field promises_ps: Expected `array` of length >= 1"),
        (["Frame", [5] * 65_537, 0, []], "field promises_ps: .* length <= 65536"),
        (["Frame", [5, 4], 0, []], "field promises_ps: they decrease with the hops"),
        (["Frame", [5, -5], 0, []], r"field promises_ps\[1\]: Expected `int` >= 0"),
        (["Frame", [5], -1, []], "field null_hops: Expected `int` >= 0"),
        (["Frame", [5], 0, {}], "field messages: Expected `array`, got `object`"),
        (["Frame", [5], 0, [0] * (2**20 + 1)], "field messages: .* length <= 1048576"),
        (["Frame", [5], 0, [[9, 4, 0]]], r"field messages\[0\]: Expected `array` of at least"),
        (None, "Expected `array`, got `None`"),
    ],
)
def test_wrong_content_is_refused_and_names_the_lp_that_sent_it(
    content: object, problem: str
) -> None:
    with pytest.raises(ProtocolError, match=f"from LP 3: .*{problem}"):
        decoder().decode(msgpack.packb([3, 0, 0, content]))


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
        decoder().decode(sent(Message(9, source, target, 0)))


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
        decoder().decode(msgpack.packb([lp, 0, 0, ["Grant", 5, True]]))


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        ((1,), "content 1 from LP 3 to LP 1 where 0 is due: content 0 was lost"),
        ((0, 0), "content 0 from LP 3 to LP 1 where 1 is due: it came a second time"),
        ((0, 1, 2, 1), "content 1 from LP 3 to LP 1 where 3 is due: it came a second time"),
        ((0, 1, 4), "content 4 from LP 3 to LP 1 where 2 is due: 2 to 3 were lost"),
    ],
)
def test_a_content_that_is_missing_or_comes_twice_is_named_by_sender_receiver_and_number(
    numbers: tuple[int, ...], problem: str
) -> None:
    receiver = decoder()
    for number in numbers[:-1]:
        receiver.decode(encode_peer(3, number, Grant(5, True)))
        # The numbers of another pair do not count.
        receiver.decode(encode_peer(2, number, Grant(5, True)))
    with pytest.raises(ProtocolError, match=f"from LP 3: {problem}"):
        receiver.decode(encode_peer(3, numbers[-1], Grant(5, True)))


def test_a_body_which_breaks_a_rule_of_the_model_is_the_fault_of_its_sender() -> None:
    strict = PeerDecoder(1, LP_OF, lambda message: f"{message.body!r} is no block")
    with pytest.raises(ProtocolError, match="LP 3: message 0 of a frame: b'x' is no block"):
        strict.decode(sent(Message(9, 4, 0, 0, b"x")))


@pytest.mark.parametrize("message", [Message(9, 4, 0, 0, b"x"), Message(9, 4, 0, 0, b"", b"x")])
def test_a_run_without_chips_has_neither_bodies_nor_payloads(message: Message) -> None:
    phold = PeerDecoder(1, LP_OF)
    assert phold.decode(sent(Message(9, 4, 0, 0))).lp == 3
    with pytest.raises(ProtocolError, match=r"LP 3: .*a packet in a run without chips"):
        phold.decode(sent(message, number=1))


def test_the_sender_is_read_from_the_envelope_alone() -> None:
    assert decoder().sender(encode_peer(3, 0, Grant(5, True))) == "LP 3"
    for stranger in (b"\xc1", encode_peer(1, 0, Grant(5, True))):
        assert decoder().sender(stranger) == "an unknown process"


def test_the_ranges_of_the_wire_are_those_of_the_machine() -> None:
    assert fields.ADDRESS_BITS == WIDE_ADDRESS_BITS
    with pytest.raises(ProtocolError):
        decode_from_lp(encode_control(Written(0, 1 << 16, b"")), "LP 0")
    assert decode_from_lp(encode_control(Written(0, MAX_SIPS - 1, b"")), "LP 0")
