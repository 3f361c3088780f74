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
from runtime.wire.packets import (
    CARRIERS,
    MAX_RUN_PACKETS,
    PacketKind,
    PacketRun,
    TransferFlow,
    TransferHeader,
    TransferRows,
)
from tests.support.packets import packet_run, run_message, transfer_header

times = st.integers(0, NEVER_PS)
counts = st.integers(0, 2**63 - 1)
sips = st.integers(0, MAX_SIPS - 1)
offsets = st.integers(0, 2**ADDRESS_BITS - 1)
headers = st.builds(
    TransferHeader,
    kind=st.sampled_from(sorted(set(PacketKind) - CARRIERS)),
    source_sip=sips,
    source_node=sips,
    sip=sips,
    node=sips,
    address=offsets,
    tag=counts,
    total=offsets,
    sent_ps=times,
    flow=st.none() | st.builds(TransferFlow, sips, sips, counts),
    rows=st.none()
    | st.builds(TransferRows, st.integers(1, 1 << 40), offsets, st.integers(0, 1 << 40), offsets),
    element=st.integers(0, 9),
    call=st.text(max_size=20),
)


def run_of(
    number: int, header: TransferHeader | None, ends: bool, packets: list[tuple[int, ...]]
) -> PacketRun:
    heads_ps, tails_ps, seqs, begins, sizes = zip(*packets, strict=True)
    return PacketRun(
        number=number,
        header=header,
        ends=ends,
        heads_ps=tuple(sorted(heads_ps)),
        tails_ps=tails_ps,
        seqs=tuple(sorted(seqs)),
        begins=begins,
        sizes=sizes,
    )


packets = st.tuples(times, times, counts, offsets, st.integers(1, 1 << 30))
runs = st.builds(
    run_of,
    counts,
    st.none() | headers,
    st.booleans(),
    st.lists(packets, min_size=1, max_size=3, unique_by=lambda packet: packet[2]),
)
entities = {"source": st.sampled_from([4, 5]), "target": st.sampled_from([0, 1])}
messages = st.builds(run_message, runs, **entities) | st.builds(
    Message, time_ps=times, seq=counts, **entities
)
frames = st.builds(
    Frame,
    st.lists(times, min_size=1, max_size=3).map(sorted).map(tuple),
    st.integers(0, 9),
    st.lists(messages, max_size=3).map(tuple),
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


def header(**changes: Any) -> TransferHeader:
    """A transfer of 3 bytes for a memory of SIP 0, from SIP 4."""
    return transfer_header(**{"source_sip": 4, "sip": 0, "total": 3} | changes)


def of_run(run: PacketRun, payload: bytes = b"abc") -> Message:
    return run_message(run, payload, source=4, target=0)


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
        of_run(packet_run(header(kind=kind, total=len(payload)), seqs=(seq,)), payload)
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
    ([4, 0, -1], r"field messages\[0\]\.body\.number: Expected `int` >= 0"),
    ([4, 2, 1], r"field messages\[0\]\.body\.ends: Expected `bool`, got `int`"),
    ([4, 3, [-9]], r"field messages\[0\]\.body\.heads_ps\[0\]: Expected `int` >= 0"),
    ([4, 4, 7], r"field messages\[0\]\.body\.tails_ps: Expected `array`, got `int`"),
    ([4, 5, ["0"]], r"field messages\[0\]\.body\.seqs\[0\]: Expected `int`, got `str`"),
    ([4, 6, [2**51]], r"field messages\[0\]\.body\.begins\[0\]: Expected `int` <= 2251799813"),
    ([4, 7, [0]], r"field messages\[0\]\.body\.sizes\[0\]: Expected `int` >= 1"),
    ([4, 7, [2**31]], r"field messages\[0\]\.body\.sizes\[0\]: Expected `int` <= 1073741824"),
    ([4, 1, 0, 6], r"field messages\[0\]\.body\.header\.kind: Invalid enum value 6"),
    ([4, 1, 0, 0], r"field messages\[0\]\.body\.header\.kind: Invalid enum value 0"),
    ([4, 1, 1, -1], r"field messages\[0\]\.body\.header\.source_sip: Expected `int` >= 0"),
    ([4, 1, 4, 2**20], r"field messages\[0\]\.body\.header\.node: Expected `int` <= 1048575"),
    ([4, 1, 5, 2**51], r"field messages\[0\]\.body\.header\.address: Expected `int` <= 22517998"),
    ([4, 1, 8, float("nan")], r"field messages\[0\]\.body\.header\.sent_ps: Expected `int`, got"),
    ([4, 1, 9, [0, 1, -2]], r"field messages\[0\]\.body\.header\.flow\.number: Expected `int` >="),
    ([4, 1, 10, [0, 1, 0, 0]], r"field messages\[0\]\.body\.header\.rows\.row_bytes: Expected `"),
    ([4, 1, 11, 10], r"field messages\[0\]\.body\.header\.element: Expected `int` <= 9"),
    ([4, 1, 12, "x" * 1025], r"field messages\[0\]\.body\.header\.call: Expected `str` of length"),
    ([4, 1, 12, b"bytes"], r"field messages\[0\]\.body\.header\.call: Expected `str`, got `byte"),
]


@pytest.mark.parametrize(("change", "problem"), WRONG_FIELDS, ids=[p for _, p in WRONG_FIELDS])
def test_a_wrong_field_of_a_message_is_named_with_the_lp_that_sent_it(
    change: list[Any], problem: str
) -> None:
    encoded, payload = sent(of_run(packet_run(header())))
    content = msgpack.unpackb(encoded)
    *path, value = change
    place = content[2][3][0]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ProtocolError, match=f"from LP 3: malformed message: {problem}") as raised:
        decoder().decode(msgpack.packb(content), payload)
    assert raised.value.peer == "LP 3"


@pytest.mark.parametrize("body", [[1] * 7, [1] * 9, {}, 7, "packets"])
def test_a_run_of_a_wrong_length_or_shape_is_refused(body: object) -> None:
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
    encoded, _ = sent(of_run(packet_run(header())))
    with pytest.raises(
        ProtocolError, match=f"LP 3: .* announce 3 payload bytes, {len(payload)} came"
    ):
        decoder().decode(encoded, payload)


def test_a_grant_has_no_payload() -> None:
    encoded, _ = encode_peer("run", 3, Grant(5))
    with pytest.raises(ProtocolError, match="LP 3: 1 payload bytes without a frame"):
        decoder().decode(encoded, b"x")


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (packet_run(header(total=4)), "payload_bytes: 3 for a transfer WRITE of 4 bytes"),
        (packet_run(header(kind=PacketKind.ACK)), "payload_bytes: 3 for a transfer ACK of 3 bytes"),
        (packet_run(None, ends=False), "payload_bytes: 3 before the last packet of a transfer"),
        (None, "payload_bytes: 3 without a packet"),
    ],
)
def test_a_payload_is_as_long_as_its_transfer_and_comes_with_the_end_of_it(
    run: PacketRun | None, problem: str
) -> None:
    message = Message(time_ps=9, source=4, target=0, seq=0, body=run, payload=b"abc")
    with pytest.raises(ProtocolError, match=f"LP 3: .*field {problem}"):
        decoder().decode(*sent(message))


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
    assert decoder().decode(*sent(of_run(packet_run(header(), **PAIR))))[0] == 3
    with pytest.raises(ProtocolError, match=f"message 0 of a frame: field body.{problem}"):
        decoder().decode(*sent(of_run(packet_run(header(), **PAIR | change))))


@pytest.mark.parametrize("packets", [0, MAX_RUN_PACKETS + 1])
def test_the_length_of_a_run_is_bounded(packets: int) -> None:
    column = [1] * packets
    run = [0, None, False, column, column, column, column, column]
    content = ["run", 3, ["FrameHeader", [5], 0, [[9, 4, 0, 0, run, 0]]]]
    with pytest.raises(ProtocolError, match=f"{packets:,} packets, a run has 1 to 16,384"):
        decoder().decode(msgpack.packb(content), b"")


@pytest.mark.parametrize("first", [{"heads_ps": (8,)}, {"seqs": (1,)}])
def test_a_message_has_the_time_and_the_number_of_its_first_packet(
    first: dict[str, tuple[int, ...]],
) -> None:
    run = packet_run(header(), **first)
    message = Message(time_ps=9, source=4, target=0, seq=0, body=run, payload=b"abc")
    with pytest.raises(ProtocolError, match="the first packet has another time or number"):
        decoder().decode(*sent(message))


def test_a_run_which_breaks_a_rule_of_the_model_is_the_fault_of_its_sender() -> None:
    strict = PeerDecoder("run", 1, LP_OF, lambda body: "field node: 8 is no memory")
    with pytest.raises(
        ProtocolError, match="LP 3: message 0 of a frame: field node: 8 is no memory"
    ):
        strict.decode(*sent(of_run(packet_run(header()))))


def test_a_run_without_chips_has_no_packets() -> None:
    phold = PeerDecoder("run", 1, LP_OF)
    assert phold.decode(*sent(Message(9, 4, 0, 0)))[0] == 3
    with pytest.raises(ProtocolError, match=r"LP 3: .*a packet in a run without chips"):
        phold.decode(*sent(of_run(packet_run(header()))))


def test_the_sender_is_read_from_the_header_alone() -> None:
    assert decoder().sender(encode_peer("run", 3, Grant(5))[0]) == "LP 3"
    for stranger in (b"\xc1", encode_peer("other", 3, Grant(5))[0]):
        assert decoder().sender(stranger) == "an unknown process"


def test_the_ranges_of_the_wire_are_those_of_the_machine() -> None:
    assert fields.ADDRESS_BITS == ADDRESS_BITS
    with pytest.raises(ProtocolError):
        decode_from_lp(encode_control(Written(0, 1 << 16, b"")), "LP 0")
    assert decode_from_lp(encode_control(Written(0, MAX_SIPS - 1, b"")), "LP 0")
