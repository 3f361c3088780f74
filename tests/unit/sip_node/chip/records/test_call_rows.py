"""Rows of calls and of their blocks: their numbers, and the layout of a block."""

from typing import Any

import pytest

from runtime.core.run_tables import BLOCKS, CALLS
from runtime.core.trace import Operand
from sip_node.chip.records import call_rows
from sip_node.chip.records.kept_calls import IN_MEMORY, IN_TCM
from tests.support.interpreted import interpreted
from tests.support.recorded import Recorded

Interpreted = interpreted(call_rows.__name__)
both = pytest.mark.parametrize(
    "kind", [call_rows.CallRows, Interpreted.CallRows], ids=["core", "interpreted"]
)


@both
def test_calls_are_numbered_from_0_and_counted(kind: Any):
    rows = kind(Recorded().recorder)
    assert rows.begun == 0
    assert [rows.new_call() for _ in range(3)] == [0, 1, 2]
    assert rows.begun == 3


@both
def test_a_call_has_its_values_in_the_order_of_the_columns(kind: Any):
    recorded = Recorded()
    rows = kind(recorded.recorder)
    texts = [recorded.recorder.text(text) for text in ("load", "bench.py:5", "E")]
    rows.add(7, 1, texts[0], texts[1], 30, 40, 6, 2, texts[2], 3, 4)
    rows.flush()
    (row,) = recorded.rows(CALLS)
    assert list(row.values()) == [7, 1, "load", "bench.py:5", 30, 40, 6, 2, "E", 3, 4]


@both
def test_a_block_has_the_bytes_of_its_elements_and_the_layout_of_its_axes(kind: Any):
    recorded = Recorded()
    rows = kind(recorded.recorder)
    for call, block in ((7, Operand(640, (2, 3), "f32", (8, 1))), (8, Operand(64, (5,), "f16"))):
        # Twice, for a layout that the rows have already.
        rows.add_block(call, 2, IN_MEMORY, block)
        rows.add_block(call, 1, IN_TCM, block)
    rows.flush()
    first, other = (640, 24, "f32", "2,3", "8,1"), (64, 10, "f16", "5", "")
    assert [tuple(row.values()) for row in recorded.rows(BLOCKS)] == [
        (7, 2, IN_MEMORY, *first),
        (7, 1, IN_TCM, *first),
        (8, 2, IN_MEMORY, *other),
        (8, 1, IN_TCM, *other),
    ]
