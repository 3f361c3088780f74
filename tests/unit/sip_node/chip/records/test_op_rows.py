"""Rows of operations: their longest wait, the first of equal ones, and chunks of rows."""

import pytest

from runtime.core.run_tables import NONE, OPS, Cause
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.records.packet_train import QueueTimes
from tests.support.interpreted import interpreted
from tests.support.recorded import Recorded

OpRows = interpreted("sip_node.chip.records.op_rows").OpRows

ROWS = 256
"""Rows of a chunk."""
RECORD = OpRecord(
    engine="pe_dma",
    name="load",
    start_ps=50,
    end_ps=90,
    cube=3,
    pe=1,
    address=640,
    nbytes=16,
    inputs=(2.0, Operand(320, (4,), "f32"), Operand(384, (4,), "f32")),
)


def queued(link_ps: int, memory_ps: int) -> QueueTimes:
    times = QueueTimes()
    times.at_links(link_ps, "a->b")
    times.at_memory(memory_ps)
    return times


def test_a_row_has_the_record_its_first_block_and_the_step_that_issued_it():
    recorded = Recorded()
    rows = OpRows(recorded.recorder)
    rows.add(RECORD, 50, Cause.NONE, None, 7)
    rows.flush()
    assert recorded.rows(OPS) == [
        {
            "engine": "pe_dma",
            "name": "load",
            "cube": 3,
            "pe": 1,
            "start_ps": 50,
            "end_ps": 90,
            "address": 640,
            "read_address": 320,
            "nbytes": 16,
            "flow_source": NONE,
            "flow_target": NONE,
            "flow_sequence": NONE,
            "flow_end": 0,
            "requested_ps": 50,
            "cause": Cause.NONE,
            "link_ps": 0,
            "link": "",
            "memory_ps": 0,
            "step": 7,
        }
    ]


def test_an_operation_without_blocks_reads_at_no_address():
    recorded = Recorded()
    rows = OpRows(recorded.recorder)
    rows.add(OpRecord("pe_math", "full", 0, 1, inputs=(2.0,)), 0, Cause.NONE, None, NONE)
    rows.flush()
    assert [row["read_address"] for row in recorded.rows(OPS)] == [0]


@pytest.mark.parametrize(
    ("requested_ps", "cause", "times", "expected"),
    [
        # 20 ps for a channel of the DMA, against the longest time of a packet.
        (30, Cause.CHANNEL, queued(10, 5), Cause.CHANNEL),
        (30, Cause.CHANNEL, queued(21, 5), Cause.LINK),
        (30, Cause.CHANNEL, queued(10, 21), Cause.MEMORY),
        # Of equal ones the first.
        (30, Cause.CHANNEL, queued(20, 20), Cause.CHANNEL),
        (50, Cause.CHANNEL, queued(20, 20), Cause.LINK),
        # A request that waited for nothing that has a name.
        (30, Cause.NONE, None, Cause.NONE),
        (30, Cause.NONE, queued(1, 0), Cause.LINK),
        (50, Cause.CHANNEL, queued(0, 0), Cause.NONE),
    ],
)
def test_the_cause_of_a_row_is_that_of_the_longest_wait(
    requested_ps: int, cause: str, times: QueueTimes | None, expected: str
):
    recorded = Recorded()
    rows = OpRows(recorded.recorder)
    rows.add(RECORD, requested_ps, cause, times, NONE)
    rows.flush()
    (row,) = recorded.rows(OPS)
    assert row["cause"] == expected
    link_ps = 0 if times is None else times.link_ps
    assert (row["link_ps"], row["link"]) == (link_ps, "a->b" if link_ps else "")
    assert row["memory_ps"] == (0 if times is None else times.memory_ps)


def test_rows_reach_the_recorder_in_chunks():
    recorded = Recorded()
    rows = OpRows(recorded.recorder)
    for _ in range(ROWS - 1):
        rows.add(RECORD, 50, Cause.NONE, None, NONE)
    assert recorded.rows(OPS) == []
    rows.add(RECORD, 50, Cause.NONE, None, NONE)
    assert len(recorded.rows(OPS)) == ROWS
    rows.add(RECORD, 50, Cause.NONE, None, NONE)
    rows.flush()
    assert len(recorded.rows(OPS)) == ROWS + 1
