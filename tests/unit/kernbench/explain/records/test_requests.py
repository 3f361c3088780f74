"""The step that requested an operation, on a PE whose threads run two programs at once."""

from pathlib import Path

import pytest

from kernbench.explain.records import open_run
from kernbench.explain.records.requests import requesting_steps
from runtime.core.run_tables import OPS, PROGRAMS, STEPS
from tests.support.run_tables import Row, op, program, step, tables, write_run

PE = {"cube": 0, "pe": 1}
PROGRAM_ROWS = (
    program(0, 0, 100),
    program(1, 10, 90, thread="kernels", kernel="product", **PE),
    program(2, 30, 60, thread="collectives", kernel="all_reduce", **PE),
)
STEP_ROWS = (
    step(0, "synchronize", 0, 100),
    step(1, "composite", 10, 12, issued_ps=12),
    step(1, "wait", 12, 90, issued_ps=12),
    step(2, "send_async", 30, 32, issued_ps=32),
    step(2, "math add", 32, 50, issued_ps=35),
    step(2, "recv", 50, 60, issued_ps=50),
)
COMPOSITE, WAIT, SEND, ADD, RECEIVE = range(1, 6)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        # Issued at that moment.
        (op("pe_dma", "ipcq_send", 33, 40, requested_ps=32, **PE), SEND),
        (op("pe_math", "add", 36, 50, requested_ps=35, **PE), ADD),
        # A tile of the product, while the all-reduce runs beside it and after its end.
        (op("pe_gemm", "gemm", 41, 44, requested_ps=41, **PE), WAIT),
        (op("pe_dma", "load", 70, 80, requested_ps=70, **PE), WAIT),
        # The second slot of a message in the background.
        (op("pe_dma", "ipcq_send", 55, 58, requested_ps=55, **PE), RECEIVE),
        # Of another PE, and of the host.
        (op("pe_gemm", "gemm", 41, 44, cube=0, pe=2), -1),
        (op("host", "MemoryWriteMsg", 41, 44), -1),
    ],
)
def test_an_operation_belongs_to_the_step_that_requested_it(
    tmp_path: Path, row: Row, expected: int
):
    run = write_run(tmp_path / "run", [tables([row], PROGRAM_ROWS, STEP_ROWS)], 100)
    records = open_run(run)
    found = requesting_steps(*(records.table(table, 0) for table in (OPS, PROGRAMS, STEPS)))
    assert found.tolist() == [expected]
