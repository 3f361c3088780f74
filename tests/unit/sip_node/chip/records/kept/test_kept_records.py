"""Records that are entered again: what they have in common with the first ones, and what not."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from runtime.core.launch_numbers import GivenNumber, LaunchNumber
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.records.op_log import OpLog
from tests.support.kept import entered, kept
from tests.support.op_records import LIMIT, op_records

BLOCK = Operand(0x100, (4,), "f32")
LOAD = OpRecord("pe_dma", "load", 5, 9, 0, 1, 0x40, 16, (4,), "f32", inputs=(BLOCK,))
ADD = OpRecord("pe_math", "add", 9, 12, 0, 1, 0x40, 16, (4,), "f32", inputs=(0.5, BLOCK))
STORE = replace(LOAD, name="store", cube=1, address=0x180, inputs=(replace(BLOCK, address=0x40),))


def digest_of(records: Sequence[OpRecord]) -> str:
    log = OpLog(None)
    for each in records:
        log.add(each)
    return log.digest(())


def on_a_chip(record: OpRecord) -> OpRecord:
    """A record with coordinates and addresses that a machine may have."""
    inputs = [
        replace(each, address=each.address % LIMIT) if isinstance(each, Operand) else each
        for each in record.inputs
    ]
    return replace(record, cube=record.cube % 999 - 1, pe=record.pe % 99 - 1, inputs=(*inputs,))


@settings(max_examples=30)
@given(st.lists(op_records().map(on_a_chip), max_size=20))
def test_records_are_entered_as_they_were(records: list[OpRecord]) -> None:
    own = [each for each in records if each.engine != "host"]
    digest, again = entered(kept(records))
    assert again == own
    assert digest == digest_of(own)


@pytest.mark.parametrize("first", [0, 1, 3])
def test_records_are_entered_in_parts_at_a_later_time_with_other_checksums(first: int) -> None:
    of, log = kept([LOAD, ADD, STORE], begin_ps=4), OpLog(None)
    records, checksums = log.begin_recording(), np.array([7, 0xFFFFFFFF, 9], np.uint32)
    of.enter(log, 0, first, 104, 0, checksums)
    of.enter(log, first, 3, 104, 0, checksums)
    expected = [
        replace(each, start_ps=each.start_ps + 100, end_ps=each.end_ps + 100, checksum=int(crc))
        for each, crc in zip((LOAD, ADD, STORE), checksums, strict=True)
    ]
    assert records == expected
    assert log.digest(()) == digest_of(expected)


def test_numbers_of_a_launch_change_and_others_stay() -> None:
    number = LaunchNumber.computed(GivenNumber(0), (2.0,))
    of = kept([LOAD, replace(ADD, inputs=(number, BLOCK, 0.5))])
    ((cube, pe, formula, uses),) = of.numbers.values()
    assert (cube, pe, formula, [*uses]) == (0, 1, GivenNumber(0), [1, 0])
    of.set_number(1, 0, -0.0)
    assert str(entered(of)[1][1].inputs) == str((-0.0, BLOCK, 0.5))


def test_flows_are_numbered_on() -> None:
    sent = OpRecord("pe_dma", "ipcq_send", 0, 1, 0, 0, flow=(0, 1, 7), inputs=(BLOCK,))
    of = kept([sent, replace(sent, flow=(1, 0, 2), flow_end=True)])
    of.number_flows({(0, 1): 300, (1, 0): 0})
    assert [each.flow for each in entered(of)[1]] == [(0, 1, 307), (1, 0, 2)]


def test_more_records_than_there_is_memory_for_are_none() -> None:
    of = kept([LOAD] * 100, most_bytes=1000)
    assert (of.is_full, of.nbytes) == (True, 0)
    assert not kept([LOAD] * 100, most_bytes=10_000).is_full


def test_a_record_with_a_block_needs_56_bytes() -> None:
    # A row of 32 bytes, and for each address 12.
    few, many = (kept([LOAD] * count).nbytes for count in (1, 101))
    assert many - few == 100 * 56


def test_the_first_end_of_an_engine_is_known() -> None:
    assert kept([LOAD, ADD, ADD], begin_ps=3).first_end_ps("pe_math") == 12
