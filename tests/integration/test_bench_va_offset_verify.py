"""Virtual addresses: every case is right on the chip, and detects a wrong memory system."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench.benches.va_offset_verify import CASES, ROWS, AccessCase, va_offset_verify
from runtime.core.bench_registry import BenchOutcome
from runtime.core.errors import KernelError, UsageError
from sip_node.chip.pe.mmu import PeMmu
from tests.support.topologies import variant_text
from tests.support.world import simulate

CHIP: dict[str, Any] = {
    "sip__cube_mesh": {"w": 2, "h": 1},
    "cube__pe_layout__pe_per_corner": 1,
    "cube__pe_layout__corners": ["NW", "SE"],
}
"""Two cubes with two PEs."""


def outcome(
    rank: int = 0, *, impl: dict[str, str] | None = None, data: bool = True, **flags: Any
) -> BenchOutcome:
    flags = {"cubes": 0} | flags
    topology = variant_text(**CHIP, **({"impl": impl} if impl else {}))
    return simulate(
        lambda _: va_offset_verify(rank, **flags), 1, topology=topology, data=data
    ).returned[0]


@pytest.mark.parametrize(("cubes", "pes"), [(0, 0), (1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("columns", [4, 130, 700])
def test_every_element_is_at_its_address(columns: int, cubes: int, pes: int):
    found = outcome(columns=columns, cubes=cubes, pes=pes)
    assert (found.label, found.ok, found.wrong, found.unchecked) == (
        "va_offset_verify",
        len(CASES),
        0,
        0,
    )


def test_without_data_nothing_is_checked_and_times_are_the_same():
    assert outcome(columns=130, data=False).table == outcome(columns=130).table
    assert outcome(columns=130, data=False).unchecked == len(CASES)


def test_the_rate_counts_every_element_read_and_written():
    table = outcome(columns=130).table
    assert table is not None
    for row in table.rows:
        assert row.labels[-1] == 4 * ROWS * 130 * 4
        assert row.values == (2 * 4 * ROWS * 130 * 4 * 1000 / row.time_ps,)


class FromTheFirstByteOfTheExtent(PeMmu):
    """Ignores the offset inside an extent."""

    def translate(self, address: int, nbytes: int) -> list[tuple[int, int]] | None:
        pieces = super().translate(address, nbytes)
        extent = self._at(address)
        return pieces and extent and [(extent.physical, pieces[0][1]), *pieces[1:]]


class AsIfExtentsFollowedEachOther(PeMmu):
    """Continues behind the extent in which a piece begins, into any tensor there."""

    def translate(self, address: int, nbytes: int) -> list[tuple[int, int]] | None:
        pieces = super().translate(address, nbytes)
        return pieces and [(pieces[0][0], nbytes)]


def test_a_wrong_mmu_is_detected():
    mmu = f"{__name__}:{AsIfExtentsFollowedEachOther.__name__}"
    assert outcome(columns=130, impl={"pe_mmu": mmu}).wrong > 0


def test_a_wrong_mmu_that_maps_the_stores_of_two_pes_to_the_same_bytes_is_refused():
    mmu = f"{__name__}:{FromTheFirstByteOfTheExtent.__name__}"
    with pytest.raises(KernelError, match=r"stores to elements .* and so does .* the same launch"):
        outcome(columns=130, impl={"pe_mmu": mmu})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_moves_all_elements_and_across_shards_each_to_another_position(case: AccessCase):
    matrix = np.arange(4 * ROWS * 130).reshape(4 * ROWS, 130)
    moved = case.expected(matrix, 4)
    assert sorted(moved.reshape(-1)) == matrix.reshape(-1).tolist()
    assert (moved != matrix).mean() > 0.9 or case.name in ("pieces", "tiles")


def test_gathered_elements_are_scattered_back():
    expected: dict[str, Callable[..., Any]] = {case.name: case.expected for case in CASES}
    matrix = np.arange(3 * ROWS * 11).reshape(3 * ROWS, 11)
    gathered = expected["read strided"](matrix, 3)
    # 11 columns over 3 PEs: 0-2, 3-6 and 7-10; the first PE's are the first elements.
    assert gathered.reshape(-1)[:6].tolist() == [0, 1, 2, 11, 12, 13]
    np.testing.assert_array_equal(expected["write strided"](gathered, 3), matrix)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            {"columns": 3},
            "--columns 3: must be at least 4, one to gather for each of the 4 PEs",
        ),
        ({"columns": -1}, "--columns -1: must be at least 4"),
        (
            {"columns": 40_000},
            (
                "--columns 40000: a PE holds 1,280,000 bytes at once; the scratch of a "
                "kernel has 1,048,576"
            ),
        ),
        ({"cubes": 3}, "--cubes 3: a SIP has 2; 0 means all"),
        ({"pes": -2}, "--pes -2: a cube has 2; 0 means all"),
    ],
)
def test_a_wrong_flag_is_refused(flags: dict[str, int], problem: str):
    with pytest.raises(UsageError, match=re.escape(problem)):
        outcome(**flags)
