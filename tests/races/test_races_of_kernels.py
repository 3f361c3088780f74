"""Kernels with races are reported, and their right twins are not."""

from collections.abc import Callable
from typing import Any

import pytest

from kernbench.explain.check.findings import Findings
from runtime import DPPolicy, torch
from tests.support.checked import CUBE, TWO_CUBES, findings
from tests.support.joined import ccl_text
from tests.support.racy_blocks import BLOCKS
from tests.support.racy_kernels import GRIDS, KERNELS, SIZE, SLOTS, Kernel

ONE_CUBE = DPPolicy(pe="row_wise", num_cubes=1, num_pes=4)
RING = ccl_text("pe_ring", n_slots=SLOTS)


def launched(kernel: Kernel, right: int, **options: Any) -> Callable[[int], None]:
    """A program that launches a kernel on four PEs, which have queues in a ring."""

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        x, y = (torch.zeros(SIZE, dp=ONE_CUBE) for _ in range(2))
        torch.launch(kernel.__name__, kernel, x, y, right, **options)
        torch.ahbm.synchronize()

    return program


NAMES = [*KERNELS, *BLOCKS, *GRIDS]


def of_kernel(name: str, right: int, **options: Any) -> Findings:
    kernel = (KERNELS | BLOCKS | GRIDS)[name]
    grid = {"grid": (8,)} if name in GRIDS else {}
    return findings(launched(kernel, right, **grid), ccl=RING, **options)


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
