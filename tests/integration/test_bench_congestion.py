"""The bench `congestion`: measured times beside closed forms, on several machines."""

import re
from typing import Any

import pytest

from kernbench.benches.congestion import congestion
from kernbench.oracle.theory.paths.contention import Contention
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.bench_registry import BenchOutcome, Table
from runtime.core.errors import UsageError
from tests.support.topologies import variant_text
from tests.support.world import simulate

TWO_PES = {
    "cube__pe_layout__pe_per_corner": 1,
    "cube__pe_layout__corners": ["NW", "SE"],
}
ONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}}
MACHINES: dict[str, dict[str, Any]] = {
    "two by two cubes": TWO_PES | {"sip__cube_mesh": {"w": 2, "h": 2}},
    "a row of cubes": TWO_PES | {"sip__cube_mesh": {"w": 3, "h": 1}},
    "a column of cubes": TWO_PES | {"sip__cube_mesh": {"w": 1, "h": 3}},
    "one cube": TWO_PES | ONE_CUBE,
    "one PE": ONE_CUBE | TWO_PES | {"cube__pe_layout__corners": ["NW"]},
    "a slow link": TWO_PES | {"sip__cube_mesh": {"w": 2, "h": 1}, "ucie__bw_gbs": 16},
    "a fast link": TWO_PES | {"sip__cube_mesh": {"w": 2, "h": 1}, "ucie__bw_gbs": 1024},
    "narrow routers": {"sip__cube_mesh": {"w": 2, "h": 1}, "cube__noc__link_bw_gbs": 100},
}


def outcome(changes: dict[str, Any], *, data: bool = False, **flags: int) -> BenchOutcome:
    world = simulate(
        lambda rank: congestion(rank, **flags), 1, topology=variant_text(**changes), data=data
    )
    return world.returned[0]


def table(found: BenchOutcome) -> Table:
    assert found.table is not None
    return found.table


@pytest.mark.parametrize("machine", MACHINES)
def test_every_time_fits_its_closed_form(machine: str) -> None:
    found = outcome(MACHINES[machine])
    assert (found.wrong, found.ok) == (0, len(table(found).rows))


def test_rates_are_those_of_the_server_that_is_shared() -> None:
    rows = {row.labels[:2]: row for row in table(outcome(MACHINES["two by two cubes"])).rows}
    # 8 channels x 32 GB/s x 80 %; a UCIe link has 128 GB/s.
    rates = {
        ("one slice", 1): 204.8,
        ("one slice", 2): 204.8,
        ("one UCIe link", 2): 128,
        ("own slices", 8): 8 * 204.8,
    }
    assert {key: rows[key].values[0] for key in rates} == pytest.approx(rates, rel=1e-6)
    assert rows["load, 2 cubes away", 1].time_ps > rows["load, 1 cube away", 1].time_ps


def test_the_busiest_link_of_a_hot_slice_is_that_to_most_cubes() -> None:
    file = TopologyFile.of(variant_text())
    corner, middle = (Contention(file).hot_slice(cube, 4096) for cube in (0, 10))
    # From the corner 12 cubes with 8 PEs each lie behind the eastern link of 128 GB/s; from the
    # middle cube no link has as much to do as the slice with 204.8 GB/s.
    assert (corner.least_ps, middle.least_ps) == (12 * 8 * 32_000, 128 * 20_000)


def test_closed_forms_of_calendars_do_not_judge_routers_with_credits() -> None:
    changes = {
        "sip__cube_mesh": {"w": 1, "h": 1},
        "cube__pe_layout__pe_per_corner": 1,
        "noc__flow_control": "credits",
    }
    found = outcome(changes)
    assert (found.ok, found.wrong) == (0, 0)
    assert table(found).rows


def test_data_do_not_change_a_time() -> None:
    small = MACHINES["two by two cubes"]
    assert outcome(small) == outcome(small, data=True)


def test_accesses_to_a_slower_memory_do_not_fit_and_its_bandwidth_does() -> None:
    slow = {"impl": {"hbm_ctrl": "examples.slow_hbm:SlowHbm"}}
    found = outcome(MACHINES["one cube"] | slow)
    wrong = {row.labels[0] for row in table(found).rows if abs(float(row.values[2])) > 0.1}
    assert wrong == {"load, own slice", "load, next PE"}
    assert found.wrong == len(wrong)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"size": 0}, "--size 0: must be at least 4096"),
        ({"size": 5000}, "--size 5000: must be a multiple of 4096, one packet"),
        (
            {"size": 1 << 20},
            "--size 1048576: a kernel loads 2,097,152 bytes at once; its scratch has 1,048,576",
        ),
        ({"access": 6}, "--access 6: must be a multiple of 4 up to 4096, one packet"),
        ({"access": 8192}, "--access 8192: must be a multiple of 4 up to 4096, one packet"),
    ],
)
def test_sizes_that_cannot_be_measured_are_refused(flags: dict[str, int], problem: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(problem)}$"):
        outcome(MACHINES["one cube"], **flags)
