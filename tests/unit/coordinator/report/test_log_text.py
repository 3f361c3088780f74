"""The text of operations in C is that of the interpreter."""

import random
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.report.log_text import LogText
from coordinator.watch.op_logs import OpLogs
from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.trace import Operand, OpRecord
from runtime.wire.codec import encode_records
from tests.support.interpreted import interpreted
from tests.support.op_records import op_records

if not IS_COMPILED:
    pytest.skip("the interpreter runs in this process", allow_module_level=True)

Interpreted = interpreted("coordinator.report.log_text").LogText
# Times at which the text of a float changes its form, and beyond which a float is not exact.
TIMES = [0, 1, 9, 10, 999_999, 1_000_000, 1_234_500, 10**15 - 1, 10**15, 10**15 + 1, 2**53 + 1]
times = st.sampled_from(TIMES) | st.integers(0, 2**62)
logs = st.dictionaries(st.integers(0, 3), st.lists(op_records(times), max_size=4), max_size=3)


def text(made: LogText) -> tuple[object, bytes, bytes]:
    # Thread ids in another order than the lanes.
    tids = [len(made.lanes) - lane for lane in range(len(made.lanes))]
    pieces = list(made.pieces(array("I", tids)))
    return (
        made.lanes,
        b"".join(lines for lines, _ in pieces),
        b"".join(slices for _, slices in pieces),
    )


@given(logs)
def test_lines_slices_and_lanes_are_those_of_the_interpreter(by_sip) -> None:
    stored = OpLogs.of(by_sip)
    assert text(LogText(stored)) == text(Interpreted(stored))


def test_a_log_of_several_pieces_and_chunks_is_whole() -> None:
    rng = random.Random(3)
    block = Operand(1 << 40, (4, 4), "f16", (8, 1))
    by_sip = {
        sip: [
            OpRecord(
                rng.choice(["pe_dma", "pe_math", "ucie"]),
                f"op {number}",
                start := rng.randrange(5_000_000),
                start + rng.randrange(9_000_000),
                cube=rng.randrange(3),
                pe=rng.randrange(2),
                inputs=(block, 0.1),
            )
            for number in range(3_000)
        ]
        for sip in (5, 0, 2)
    }
    stored = OpLogs()
    for sip, records in by_sip.items():
        for first in range(0, len(records), 700):
            stored.add(sip, encode_records(records[first : first + 700]), "LP 0")
    stored.index()
    made = text(LogText(stored))
    assert made == text(Interpreted(stored))
    assert made[1].count(b"\n") == 9_000
    assert len(set(made[0])) == len(made[0]) > 18, "operations of a component overlap"


def test_a_flow_is_found_by_its_numbers_however_they_are_encoded() -> None:
    sent = OpRecord("ucie", "send", 0, 5, flow=(1, 2, 3))
    arrived = OpRecord("ucie", "recv", 6, 7, flow=(1, 2, 3), flow_end=True)
    chunk = encode_records([sent, arrived])
    first = chunk.index(b"\x93\x01\x02\x03")
    # The first number of the first flow as one of 64 bits.
    longer = chunk[: first + 1] + b"\xcf" + bytes(7) + chunk[first + 1 :]
    stored = OpLogs()
    stored.add(0, longer, "LP 0")
    stored.index()
    _, _, slices = text(LogText(stored))
    assert slices.count(b'"bind_id":"0x1"') == 2
    assert text(LogText(stored)) == text(Interpreted(stored))
