"""Kernels with races are reported, and their right twins are not."""

from typing import Any, Literal

import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.compiled.choice import IS_COMPILED
from runtime.language.value import Pointer
from tests.support.checked import CUBE, TWO_CUBES, findings
from tests.support.kernel_verdicts import NAMES, of_kernel
from tests.support.racy_kernels import PART, SIZE
from tests.support.two_modes import printed


@pytest.mark.parametrize("name", NAMES)
def test_a_race_is_reported_and_its_right_twin_is_not(name: str) -> None:
    wrong = of_kernel(name, 0)
    assert wrong.races, "the race is not reported"
    assert not wrong.undefined
    assert of_kernel(name, 1).reports == 0


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_depend_on_neither_data_nor_machine_nor_folding(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines(**options: Any) -> list[set[frozenset[str]]]:
        runs = [of_kernel(name, right, **options).races for right in (0, 1)]
        return [{frozenset((each.first.line, each.second.line)) for each in run} for run in runs]

    expected = lines()
    monkeypatch.setenv("KERNBENCH_FOLD", "0")
    assert lines(data=False) == expected
    assert lines(topology=TWO_CUBES, data=False) == expected
    assert CUBE != TWO_CUBES


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.nightly)])
def test_both_modes_have_the_same_records_and_verdicts(step: int) -> None:
    interpreted, compiled = printed("tests.support.kernel_verdicts", step)
    assert len(compiled) == 2 * len(NAMES[::step])
    assert interpreted == compiled


@pytest.mark.parametrize("scope", ["cube", "launch"])
def test_a_barrier_of_a_cube_orders_no_pes_of_other_cubes(scope: Literal["cube", "launch"]) -> None:
    def passed_on(x: Pointer, y: Pointer) -> None:
        if tl.program_id(1) == 0 and tl.program_id(0) == 0:
            tl.store(x, tl.full(PART, 1.0, tl.float32))
        tl.barrier(scope)
        if tl.program_id(1) == 1 and tl.program_id(0) == 0:
            tl.store(y, tl.load(x, PART))

    def program(_rank: int) -> None:
        both = DPPolicy(cube="row_wise", pe="row_wise")
        torch.launch("passed_on", passed_on, *(torch.zeros(SIZE, dp=both) for _ in "xy"))
        torch.ahbm.synchronize()

    assert len(findings(program, topology=TWO_CUBES).races) == (scope == "cube")


@pytest.mark.parametrize("right", [0, 1])
def test_barriers_of_a_cube_and_of_the_launch_are_counted_apart(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        own, other = (tl.program_id(0) + 4 * each for each in (tl.program_id(1), 0))
        if tl.program_id(1) == 0:
            tl.barrier("cube")
        tl.barrier()
        tl.store(x + own, tl.full(1, 1.0, tl.float32))
        if right:
            tl.barrier()
        tl.store(y + own, tl.load(x + other, 1))

    def program(_rank: int) -> None:
        both = DPPolicy(cube="row_wise", pe="row_wise")
        torch.launch("k", kernel, *(torch.zeros(SIZE, dp=both) for _ in "xy"))
        torch.ahbm.synchronize()

    found = findings(program, topology=TWO_CUBES).races
    assert [each.common for each in found] == ["barrier 1 of the launch of k"][right:]
