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
from runtime.language import mock, tl
from runtime.language.value import Array, Pointer
from tests.support import undefined_kernels
from tests.support.checked import checked
from tests.support.kernel_verdicts import NAMES, run_kernel, run_of_kernel
from tests.support.mock_verdicts import launch_kernel, launch_of_kernel, ring, zeros
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


def twice(value: tl.Value) -> tl.Value:
    return value * 2.0


def twice_of_integers(value: tl.Value) -> tl.Value:
    return value * 2


def interlocks(x: Pointer, y: Pointer, right: int) -> None:
    """Commands of PE 0 that wait for operations in flight, each without a `tl.wait`."""
    if tl.program_id(0) == 1:
        for _ in range(3):
            tl.send("W", tl.full(8, 1.0, tl.float32))
        tl.recv("W", 64, tl.float32)
    if tl.program_id(0) != 0:
        return
    a, b, c = (tl.full((8, 8), 1.0, tl.float32) for _ in range(3))
    rows, part = tl.full(4, right, tl.int32), tl.empty(8, tl.float32)
    tl.load_async(x, (8, 8), out=a)
    tl.exp(a)
    tl.load_async(x, (8, 8), out=a)
    tl.store(y, a)
    tl.load_async(x, (8, 8), out=a)
    tl.store_async(y + 64, a)
    tl.load(x, (8, 8), out=a)
    tl.load_async(x, (8, 8), out=b)
    tl.composite("gemm", a, b, c)
    tl.fused(twice, c)
    tl.composite("gemm", a, b, c)
    tl.maximum(b, c)
    tl.composite("gemm", c, b, tl.ref(x + 64, (8, 8)))
    tl.load(x, (8, 8), out=c)
    tl.gather_async(x, rows, (16,), out=a.reshape(4, 16))
    tl.gather(x, rows, (16,), out=a.reshape(4, 16))
    tl.fused_async(twice, a, out=b)
    tl.load_async(x, (8, 8), out=b)
    tl.fused_async(twice, b, out=a)
    tl.store_async(x + 128, b)
    tl.fused_async(twice, a, out=b)
    tl.store_async(y + 192, c)
    tl.composite("gemm", a, b, c)
    tl.gather_async(x, rows, (16,), out=a.reshape(4, 16))
    tl.fused_async(twice_of_integers, rows, out=rows)
    tl.gather(x, rows, (16,))
    tl.send("E", a.reshape(64))
    tl.store_async(x + 192, part)
    for _ in range(2):
        tl.recv_async("E", dst_addr=part)
        tl.exp(part)
    tl.recv_async("E", dst_addr=part)
    with tl.scratch():
        tl.store_async(y + 128, tl.full(64, 1.0, tl.float32))
    tl.load_async(x, 8, out=part)


def test_the_interlocks_of_values_are_those_of_the_chip() -> None:
    run, launch = run_kernel(interlocks, 1), launch_kernel(interlocks, 1)
    on_chip = rows_by_pe(SipCalls(simulated_records(1, run.time_ps, run.rows, run.texts), 0))
    assert rows_by_pe(launch.calls()) == on_chip
    waits = [each.awaits for each in on_chip[0] if each.operation == "wait"]
    assert len(waits) > 12


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
