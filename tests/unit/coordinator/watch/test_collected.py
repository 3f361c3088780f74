"""Collected messages of the LPs of a run; the test makes the messages."""

import pytest

from coordinator.watch.collected import Collected
from runtime.core.errors import ProtocolError
from runtime.core.trace import OpRecord
from runtime.wire.codec import encode_records
from runtime.wire.control import (
    FromLp,
    MemoryContents,
    Printed,
    Ready,
    RecordChunk,
    Status,
    TraceChunk,
    Transferred,
    Written,
)
from runtime.wire.reports import DevicePrint, RingAddress, SlotTransfer

RECORD = OpRecord("ucie", "send", 0, 5)
LINE = DevicePrint(time_ps=5, sip=2, cube=0, pe=1, kernel="k", text="x")
SLOT = SlotTransfer(
    time_ps=5,
    sip=2,
    cube=0,
    pe=1,
    kernel="k",
    operation="send",
    direction="E",
    peer=(3, 0, 1),
    nbytes=64,
    dtype="f32",
    slot=0,
    address=RingAddress(address=4096, resource="tcm", sip=2, cube=0, pe=1, offset=0),
)
OF_SIP_2 = (
    TraceChunk(1, 2, encode_records([RECORD])),
    RecordChunk(1, 2, "programs", b"", ("a",)),
    Written(1, 2, b"abc"),
    MemoryContents(1, 2, 4096, b"abc"),
    Transferred(1, SLOT),
    Printed(1, LINE),
)


@pytest.mark.parametrize("message", OF_SIP_2, ids=lambda message: type(message).__name__)
def test_a_message_about_a_sip_of_another_lp_is_refused_and_not_kept(message: FromLp):
    collected = Collected()
    with pytest.raises(ProtocolError) as error:
        collected.add(1, (1, 3), message)
    assert (error.value.peer, error.value.problem) == (
        "LP 1",
        "it reports SIPs (2,), it holds (1, 3)",
    )
    assert contents(collected) == contents(Collected())


def test_messages_are_kept_by_sip():
    collected = Collected()
    for message in (*OF_SIP_2, Written(1, 2, b"de")):
        collected.add(1, (1, 2), message)
    assert contents(collected) == (
        {2: b"abcde"},
        [(4096, b"abc")],
        [SLOT],
        [LINE],
        [2],
        ["a"],
        {2: [RECORD]},
    )


def test_the_time_of_a_run_is_the_latest_that_an_lp_has_reported():
    collected = Collected()
    for lp, time_ps in ((0, 3_000), (1, 7_000), (0, 5_000)):
        collected.add(lp, (lp,), Status(lp, time_ps, 1, 0.0, 9_000, 8_000, 1 - lp))
    assert collected.time_ps == 7_000
    assert collected.reached_ps == {0: 5_000, 1: 7_000}


def test_a_message_of_the_start_is_refused_during_a_run():
    with pytest.raises(ProtocolError, match="Ready during a run"):
        Collected().add(0, (0,), Ready(0, "hash"))


def contents(collected: Collected) -> tuple[object, ...]:
    collected.logs.index()
    return (
        {sip: bytes(data) for sip, data in collected.written.items()},
        collected.contents,
        collected.transfers,
        collected.prints,
        [stored.sip for stored in collected.records.tables],
        collected.records.texts(2),
        collected.logs.records(),
    )
