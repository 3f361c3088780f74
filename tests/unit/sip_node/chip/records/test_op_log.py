import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.launch_numbers import GivenNumber, LaunchNumber
from runtime.core.trace import OpRecord
from runtime.wire.codec import decode_records
from sip_node.chip.memory.memory import Memory
from sip_node.chip.records.op_log import CHUNK_RECORDS, OpLog
from tests.support.op_records import op_records

RECORDS = [
    OpRecord(engine="pe_dma", name=f"load {index}", start_ps=index, end_ps=index + 5, address=index)
    for index in range(20)
]


def digest_of(
    records: list[OpRecord],
    flush_after: frozenset[int] = frozenset(),
    memories: tuple[Memory, ...] = (),
) -> str:
    log = OpLog(None)
    for index, record in enumerate(records):
        log.add(record)
        if index in flush_after:
            log.flush()
    return log.digest(memories)


def test_the_digest_is_that_of_the_records_one_by_one() -> None:
    encode = msgspec.msgpack.encode
    expected = hashlib.sha256(b"".join(encode(record) for record in RECORDS)).hexdigest()
    assert digest_of(RECORDS) == expected
    # More than 15 elements change the header of a MessagePack array.
    few = hashlib.sha256(b"".join(encode(record) for record in RECORDS[:15])).hexdigest()
    assert digest_of(RECORDS[:15]) == few


@given(st.frozensets(st.integers(0, 19)))
def test_the_digest_does_not_depend_on_where_chunks_are_cut(flush_after: frozenset[int]) -> None:
    assert digest_of(RECORDS, flush_after) == digest_of(RECORDS)


def test_the_digest_depends_on_every_record_and_their_order() -> None:
    swapped = [RECORDS[1], RECORDS[0], *RECORDS[2:]]
    assert (
        len(
            {
                digest_of(records)
                for records in (RECORDS, RECORDS[:-1], swapped, [*RECORDS, RECORDS[0]])
            }
        )
        == 4
    )


def test_the_digest_covers_the_memories_and_their_names() -> None:
    def memory(name: str, data: bytes) -> Memory:
        made = Memory(name, 1 << 20, data=True)
        made.write(100, data)
        return made

    blank = Memory("hbm", 1 << 20, data=True)
    kinds = [(), (memory("hbm", b"a"),), (memory("hbm", b"b"),), (memory("sram", b"a"),)]
    assert len({digest_of(RECORDS, memories=memories) for memories in kinds}) == 4
    assert digest_of(RECORDS, memories=(blank,)) == digest_of(RECORDS)


def test_reading_the_digest_does_not_change_it() -> None:
    log = OpLog(None)
    log.add(RECORDS[0])
    assert log.digest(()) == log.digest(()) == digest_of(RECORDS[:1])


def test_the_sink_gets_every_record_once_in_chunks() -> None:
    chunks: list[tuple[OpRecord, ...]] = []
    log = OpLog(lambda chunk: chunks.append(decode_records(chunk, "the log")))
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
    assert log.digest(()) == digest_of(records)


def test_the_log_has_the_latest_end_of_its_operations() -> None:
    log = OpLog(None)
    for end_ps in (5, 9, 7):
        log.add(OpRecord(engine="pe_dma", name="load", start_ps=0, end_ps=end_ps))
    assert log.last_ps == 9


@given(st.lists(op_records(), max_size=3))
def test_a_record_has_the_bytes_that_msgspec_makes_of_it(added: list[OpRecord]) -> None:
    expected = b"".join(msgspec.msgpack.encode(record) for record in added)
    assert digest_of(added) == hashlib.sha256(expected).hexdigest()


def test_a_number_with_a_formula_has_the_bytes_of_the_number() -> None:
    numbers = 0.1, -0.0, float("nan")
    formulas = tuple(LaunchNumber.computed(GivenNumber(each), numbers) for each in range(3))
    records = [OpRecord("pe_math", "add", 0, 1, inputs=each) for each in (numbers, formulas)]
    assert digest_of(records[:1]) == digest_of(records[1:])


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(TypeError, match="7 is no op record"):
        OpLog(None).add(7)  # type: ignore[arg-type]
