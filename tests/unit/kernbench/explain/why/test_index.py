"""Finds the step that requested an operation, on a PE whose threads run two kernels at once."""

from pathlib import Path

import pytest

from kernbench.explain.records import open_run
from kernbench.explain.why.index import SipIndex
from tests.support.run_tables import op, program, step, tables, write_run

PE = {"cube": 0, "pe": 1}


@pytest.mark.parametrize(
    ("issuing", "time_ps", "expected"),
    [
        # A tile of the product, while its kernel waits beside the collective.
        (1, 41, 1),
        (1, 70, 1),
        # A slot of the collective, in the background; then at the end of the call that issued it.
        (3, 41, 3),
        (3, 30, 2),
        # Of no kernel.
        (-1, 41, -1),
    ],
)
def test_an_operation_is_requested_in_a_step_of_the_program_that_issued_it(
    tmp_path: Path, issuing: int, time_ps: int, expected: int
):
    programs = [
        program(1, 5, 90, thread="kernels", **PE),
        program(2, 20, 60, thread="collectives", **PE),
    ]
    steps = [
        step(1, "composite", 5, 10, step=1),
        step(1, "wait", 10, 90, step=2, issued_ps=10),
        step(2, "send_async", 20, 30, step=3),
        step(2, "recv", 30, 60, step=4, issued_ps=35),
    ]
    ops = [op("pe_dma", "any", time_ps, 95, step=issuing, **PE)]
    records = open_run(write_run(tmp_path / "run", [tables(ops, programs, steps)], 100))
    assert SipIndex(records, 0).requesting_step(0, time_ps) == expected
