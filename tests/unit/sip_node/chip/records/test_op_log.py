import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.launch_numbers import GivenNumber, LaunchNumber
from runtime.core.run_tables import NONE, OPS, Cause
from runtime.core.trace import OpRecord
from runtime.wire.codec import decode_records
from sip_node.chip.memory.memory import Memory
from sip_node.chip.records.op_log import CHUNK_RECORDS, OpLog
from sip_node.chip.records.packet_train import QueueTimes
from tests.support.interpreted import interpreted
from tests.support.op_records import op_records
from tests.support.recorded import Recorded

Interpreted = interpreted("sip_node.chip.records.op_log")
# The rows in C take operations in C only.
Interpreted.OpRows = interpreted("sip_node.chip.records.op_rows").OpRows
both = pytest.mark.parametrize("kind", [OpLog, Interpreted.OpLog], ids=["core", "interpreted"])
RECORDS = [
    OpRecord(engine="pe_dma", name=f"load {index}", start_ps=index, end_ps=index + 5, address=index)
    for index in range(20)
]


def digest_of(
    records: list[OpRecord],
    flush_after: frozenset[int] = frozenset(),
    memories: tuple[Memory, ...] = (),
    kind: Any = OpLog,
) -> str:
    log = kind(None)
    for index, record in enumerate(records):
        log.add(record)
        if index in flush_after:
            log.flush()
    return log.digest(memories)


@both
def test_the_digest_is_that_of_the_records_one_by_one(kind: Any) -> None:
    encode = msgspec.msgpack.encode
    expected = hashlib.sha256(b"".join(encode(record) for record in RECORDS)).hexdigest()
    assert digest_of(RECORDS, kind=kind) == expected
    # More than 15 elements change the header of a MessagePack array.
    few = hashlib.sha256(b"".join(encode(record) for record in RECORDS[:15])).hexdigest()
    assert digest_of(RECORDS[:15], kind=kind) == few


@both
@given(st.frozensets(st.integers(0, 19)))
def test_the_digest_does_not_depend_on_where_chunks_are_cut(
    kind: Any, flush_after: frozenset[int]
) -> None:
    assert digest_of(RECORDS, flush_after, kind=kind) == digest_of(RECORDS, kind=kind)


@both
def test_the_digest_depends_on_every_record_and_their_order(kind: Any) -> None:
    swapped = [RECORDS[1], RECORDS[0], *RECORDS[2:]]
    assert (
        len(
            {
                digest_of(records, kind=kind)
                for records in (RECORDS, RECORDS[:-1], swapped, [*RECORDS, RECORDS[0]])
            }
        )
        == 4
    )


@both
def test_the_digest_covers_the_memories_and_their_names(kind: Any) -> None:
    def memory(name: str, data: bytes) -> Memory:
        made = Memory(name, 1 << 20, data=True)
        made.write(100, data)
        return made

    blank = Memory("hbm", 1 << 20, data=True)
    kinds = [(), (memory("hbm", b"a"),), (memory("hbm", b"b"),), (memory("sram", b"a"),)]
    assert len({digest_of(RECORDS, memories=memories, kind=kind) for memories in kinds}) == 4
    assert digest_of(RECORDS, memories=(blank,), kind=kind) == digest_of(RECORDS, kind=kind)


@both
def test_reading_the_digest_does_not_change_it(kind: Any) -> None:
    log = kind(None)
    log.add(RECORDS[0])
    assert log.digest(()) == log.digest(()) == digest_of(RECORDS[:1], kind=kind)


@both
def test_the_sink_gets_every_record_once_in_chunks(kind: Any) -> None:
    chunks: list[tuple[OpRecord, ...]] = []
    log = kind(lambda chunk: chunks.append(decode_records(chunk, "the log")))
    records = [
        OpRecord(engine="pe_math", name="add", start_ps=time_ps, end_ps=time_ps)
        for time_ps in range(CHUNK_RECORDS + 3)
    ]
    for record in records:
        log.add(record)
    assert [len(chunk) for chunk in chunks] == [CHUNK_RECORDS]
    log.flush()
    log.flush()
    assert [record for chunk in chunks for record in chunk] == records
    assert log.digest(()) == digest_of(records, kind=kind)


@both
def test_the_log_has_the_latest_end_of_its_operations(kind: Any) -> None:
    log = kind(None)
    for end_ps in (5, 9, 7):
        log.add(OpRecord(engine="pe_dma", name="load", start_ps=0, end_ps=end_ps))
    assert log.last_ps == 9


@both
def test_the_operation_that_ends_now_is_the_latest_one_of_its_pe(kind: Any) -> None:
    log = kind(None)
    assert log.ended_now(0, -1, -1) == NONE
    for end_ps in (5, 9):
        log.add(OpRecord("pe_dma", "load", 0, end_ps, cube=2, pe=3))
    assert log.ended_now(9, 2, 3) == 1
    assert [log.ended_now(*other) for other in ((5, 2, 3), (9, 1, 3), (9, 2, 4))] == [NONE] * 3


@both
def test_a_recording_has_the_operations_between_its_begin_and_its_end(kind: Any) -> None:
    log = kind(None)
    log.add(RECORDS[0])
    first, given = log.begin_recording(), [RECORDS[9]]
    assert log.begin_recording(given) is given
    log.add(RECORDS[1])
    log.end_recording(first)
    log.add(RECORDS[2])
    assert (first, given) == ([RECORDS[1]], [RECORDS[9], RECORDS[1], RECORDS[2]])


@both
def test_what_the_host_wrote_is_passed_on_and_the_digest_does_not_have_it(kind: Any) -> None:
    written: list[bytes] = []
    log = kind(None, written.append)
    log.add_written(b"ab")
    log.add_written(b"c")
    assert written == [b"ab", b"c"]
    assert log.digest(()) == digest_of([], kind=kind)


@both
def test_a_crossing_waits_for_its_link_since_it_was_requested(kind: Any) -> None:
    recorded = Recorded()
    log, times = kind(None, recorder=recorded.recorder), QueueTimes()
    times.at_links(4, "a->b")
    log.add_crossing(
        engine="port",
        name="E",
        start_ps=50,
        end_ps=90,
        address=640,
        nbytes=16,
        requested_ps=30,
        times=times,
        step=5,
    )
    log.flush()
    (row,) = recorded.rows(OPS)
    assert (row["engine"], row["name"], row["address"], row["nbytes"]) == ("port", "E", 640, 16)
    assert (row["requested_ps"], row["start_ps"], row["end_ps"]) == (30, 50, 90)
    assert (row["cause"], row["link"], row["link_ps"]) == (Cause.LINK, "a->b", 4)
    assert row["step"] == 5


@both
def test_an_operation_without_a_request_was_requested_at_its_start(kind: Any) -> None:
    recorded = Recorded()
    log = kind(None, recorder=recorded.recorder)
    log.add(RECORDS[3])
    log.add(RECORDS[4], 1, Cause.CHANNEL)
    log.flush()
    rows = [(row["requested_ps"], row["cause"]) for row in recorded.rows(OPS)]
    assert rows == [(3, Cause.NONE), (1, Cause.CHANNEL)]


@both
def test_an_operation_has_the_step_that_issued_it_and_else_none(kind: Any) -> None:
    recorded = Recorded()
    log = kind(None, recorder=recorded.recorder)
    log.step = 9
    log.add(RECORDS[3], step=4)
    log.add(RECORDS[4])
    log.flush()
    assert [row["step"] for row in recorded.rows(OPS)] == [4, NONE]


@both
def test_the_digest_does_not_depend_on_the_steps(kind: Any) -> None:
    log = kind(None)
    for number, record in enumerate(RECORDS):
        log.add(record, step=number)
    assert log.digest(()) == digest_of(RECORDS, kind=kind)


@both
def test_a_log_has_rows_of_steps_only_with_a_recorder(kind: Any) -> None:
    assert kind(None).steps is None
    assert kind(None, recorder=Recorded().recorder).steps is not None


@given(st.lists(op_records(), max_size=3))
def test_a_record_has_the_bytes_that_msgspec_makes_of_it(added: list[OpRecord]) -> None:
    expected = b"".join(msgspec.msgpack.encode(record) for record in added)
    assert digest_of(added) == hashlib.sha256(expected).hexdigest()


@both
def test_a_number_with_a_formula_has_the_bytes_of_the_number(kind: Any) -> None:
    numbers = 0.1, -0.0, float("nan")
    formulas = tuple(LaunchNumber.computed(GivenNumber(each), numbers) for each in range(3))
    records = [OpRecord("pe_math", "add", 0, 1, inputs=each) for each in (numbers, formulas)]
    assert digest_of(records[:1], kind=kind) == digest_of(records[1:], kind=kind)


@both
def test_what_is_no_record_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="7 is no op record"):
        kind(None).add(7)  # type: ignore[arg-type]
