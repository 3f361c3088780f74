"""Kernels with races are reported, and their right twins are not."""

from collections.abc import Callable
from typing import Any, Literal

import pytest

from kernbench.explain.check.findings import Findings
from runtime import DPPolicy, tl, torch
from runtime.language.value import Pointer
from tests.support.checked import CUBE, TWO_CUBES, findings
from tests.support.joined import ccl_text
from tests.support.racy_kernels import GRIDS, KERNELS, PART, SIZE, SLOT_BYTES, SLOTS, Kernel

ONE_CUBE = DPPolicy(pe="row_wise", num_cubes=1, num_pes=4)
RING = ccl_text("pe_ring", n_slots=SLOTS, slot_size=SLOT_BYTES)


def launched(kernel: Kernel, right: int, **options: Any) -> Callable[[int], None]:
    """A program that launches a kernel on four PEs, which have queues in a ring."""

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        x, y = (torch.zeros(SIZE, dp=ONE_CUBE) for _ in range(2))
        torch.launch(kernel.__name__, kernel, x, y, right, **options)
        torch.ahbm.synchronize()

    return program


def of_kernel(name: str, right: int, **options: Any) -> Findings:
    kernel, grid = (GRIDS[name], {"grid": (8,)}) if name in GRIDS else (KERNELS[name], {})
    return findings(launched(kernel, right, **grid), ccl=RING, **options)


@pytest.mark.parametrize("name", [*KERNELS, *GRIDS])
def test_a_race_is_reported_and_its_right_twin_is_not(name: str) -> None:
    wrong = of_kernel(name, 0)
    assert wrong.races, "the race is not reported"
    assert not wrong.undefined
    assert of_kernel(name, 1).reports == 0


@pytest.mark.parametrize("name", [*KERNELS, *GRIDS])
def test_verdicts_depend_on_neither_data_nor_machine(name: str) -> None:
    def lines(**options: Any) -> list[set[frozenset[str]]]:
        runs = [of_kernel(name, right, **options).races for right in (0, 1)]
        return [{frozenset((each.first.line, each.second.line)) for each in run} for run in runs]

    expected = lines()
    assert lines(data=False) == expected
    assert lines(topology=TWO_CUBES, data=False) == expected
    assert CUBE != TWO_CUBES


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
