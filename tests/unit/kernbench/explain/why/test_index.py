"""Finds the step that requested an operation, on a PE whose threads run two kernels at once."""

from pathlib import Path

import pytest

from kernbench.explain.records import open_run
from kernbench.explain.why.index import SipIndex
from tests.support.run_tables import op, program, step, tables, write_run

PE = {"cube": 0, "pe": 1}


@pytest.mark.parametrize(
    ("name", "time_ps", "expected"),
    [
        ("gemm", 41, 0),
        ("ipcq_send", 41, 1),
        ("ipcq_recv", 41, 1),
        # Issued at that moment.
        ("add", 35, 1),
        ("gemm", 70, 0),
    ],
)
def test_a_tile_is_requested_by_the_kernel_and_a_slot_by_the_collective(
    tmp_path: Path, name: str, time_ps: int, expected: int
):
    programs = [
        program(1, 10, 90, thread="kernels", **PE),
        program(2, 30, 60, thread="collectives", **PE),
    ]
    steps = [step(1, "wait", 10, 90, issued_ps=10), step(2, "recv", 30, 60, issued_ps=35)]
    ops = [op("pe_dma", name, time_ps, 95, **PE)]
    records = open_run(write_run(tmp_path / "run", [tables(ops, programs, steps)], 100))
    assert SipIndex(records, 0).requesting_step(0, time_ps) == expected
