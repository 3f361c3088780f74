"""A checked launch of the mock runtime has the reports of a run on the chip, and the same rows."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from kernbench.explain.check.findings import Findings
from kernbench.explain.check.run_calls import CallRow, SipCalls
from kernbench.explain.records.collected import simulated_records
from runtime.core.errors import FindingsError
from runtime.core.run_tables import NONE
from runtime.language import mock
from runtime.language.value import Array
from tests.support import undefined_kernels
from tests.support.checked import checked
from tests.support.kernel_verdicts import NAMES, run_of_kernel
from tests.support.mock_verdicts import launch_of_kernel, ring, zeros
from tests.support.undefined_kernels import COUNT, PROGRAMS

TAKES_ANOTHER_MESSAGE = "token_from_any_direction"
"""A receive from any direction takes the message that comes first, which depends on times."""


class RowOfCall(NamedTuple):
    """A row of a call without times, addresses and cuts of memory: the same in both runtimes."""

    operation: str
    form: str
    line: str
    awaits: str
    queue: str
    slots: int
    depth: int
    values: list[tuple[int, tuple[int, ...], str]]
    memory: list[tuple[int, int]]


def rows_by_pe(calls: SipCalls) -> dict[int, list[RowOfCall]]:
    rows = dict[int, list[RowOfCall]]()
    for program in calls.programs:
        [chunks] = calls.rows([program.program])
        own = [row for chunk in chunks for row in chunk]
        operations = {each.call: each.operation for each in own}
        rows[program.pe] = [_row(each, operations) for each in own]
    return rows


def _row(row: CallRow, operations: dict[int, str]) -> RowOfCall:
    memory = dict[int, int]()
    for each in row.blocks:
        if each.in_memory:
            memory[each.access] = memory.get(each.access, 0) + each.layout.nbytes
    return RowOfCall(
        operation=row.operation,
        form=row.form,
        line=row.line,
        awaits=operations.get(row.awaits, ""),
        queue=row.queue.partition("@")[2],
        # Of an atomic operation, it is its place in the order in which memories serve those of PEs.
        slots=row.slots if row.queue else 0,
        depth=row.depth,
        values=[
            (each.access, each.layout.shape, each.layout.dtype)
            for each in row.blocks
            if not each.in_memory
        ],
        memory=list(memory.items()),
    )


def races_of(findings: Findings) -> list[tuple[set[str], str, str, int]]:
    return [
        (
            {f"{place.operation} at {place.line}" for place in (each.first, each.second)},
            each.common,
            each.remedy,
            each.pairs,
        )
        for each in findings.races
    ]


@pytest.mark.parametrize("name", [each for each in NAMES if each != TAKES_ANOTHER_MESSAGE])
def test_reports_and_rows_are_those_of_the_chip(name: str) -> None:
    for right in (0, 1):
        run, launch = run_of_kernel(name, right), launch_of_kernel(name, right)
        on_chip = SipCalls(simulated_records(1, run.time_ps, run.rows, run.texts), 0)
        assert rows_by_pe(launch.calls()) == rows_by_pe(on_chip)
        findings = launch.findings()
        assert races_of(findings) == races_of(checked(run))
        assert findings.reports == (0 if right else len(findings.races))
        assert {each.first.end_ps for each in findings.races} <= {NONE}


@pytest.mark.parametrize(
    "name",
    [
        "a_value_of_empty",
        "the_sum_of_a_product",
        "a_bias_of_a_product",
        "half_of_an_operand_in_tcm",
        "scratch_that_is_used_again",
        "a_part_that_was_received",
    ],
)
def test_values_that_a_kernel_leaves_undefined_are_reported(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(kernel: Callable[..., object], *arrays: Array) -> None:
        if "received" in name:
            mock.launch(kernel, *arrays, pes=2, queues=ring(), check=True)
        else:
            mock.launch(kernel, *arrays, check=True)

    def tensor(_: int) -> Array:
        return zeros(COUNT)

    def make(count: int, **_: object) -> Array:
        return zeros(count)

    monkeypatch.setattr(undefined_kernels, "launch", launch)
    monkeypatch.setattr(undefined_kernels, "tensor", tensor)
    monkeypatch.setattr(undefined_kernels, "torch", SimpleNamespace(zeros=make))
    with pytest.raises(FindingsError, match=r"undefined: element \d+ of a value of tl\.empty"):
        PROGRAMS[name](0)
    PROGRAMS[name](1)
