"""The races of random kernels are those that a search over all orders of their calls finds."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from kernbench.explain.check.accesses import TrackedAccess
from kernbench.explain.check.overlaps import overlaps
from kernbench.explain.check.races import races
from kernbench.explain.check.replay import CallReplay
from kernbench.explain.check.run_calls import SipCalls
from kernbench.explain.records.collected import simulated_records
from runtime import DPPolicy, torch
from tests.support.joined import ccl_text
from tests.support.random_races import (
    CELL,
    CELLS,
    PES,
    SLOTS,
    AccessId,
    Calls,
    kernel_of,
    races_in_all_orders,
    random_calls,
)
from tests.support.topologies import variant_text
from tests.support.world import simulate

MACHINE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE", "SW"],
)
PLACEMENT = DPPolicy(pe="row_wise", num_cubes=1, num_pes=PES)
Pairs = set[frozenset[AccessId]]


def reported(kernels: Sequence[Calls]) -> list[Pairs]:
    """The pairs of accesses that the check reports for each kernel, in one run."""

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        for calls in kernels:
            x = torch.zeros(CELLS * CELL, dp=PLACEMENT)
            torch.launch("random", kernel_of(calls), x)
        torch.ahbm.synchronize()

    ring = ccl_text("pe_ring", n_slots=SLOTS)
    world = simulate(program, 1, topology=MACHINE, ccl=ring, record=True, data=False)
    sip = SipCalls(simulated_records(1, world.time_ps, world.rows, world.texts), 0)
    commands = sorted({each.command for each in sip.programs if each.kernel == "random"})
    every = {(each.tensor, command) for each in sip.tensors for command in commands}
    replay = CallReplay([sip], None, {0: every}, is_strict=False)
    replay.run()
    selected = overlaps(sip, replay.begun)
    assert len(commands) == len(kernels)
    pairs: list[Pairs] = [set() for _ in kernels]
    names = _names(replay.accesses, dict(zip(commands, kernels, strict=True)))
    for race in races(replay.accesses):
        assert (race.tensor, race.first.accessor.command) in selected
        both = frozenset(names[each.row.call] for each in (race.first, race.second))
        pairs[commands.index(race.first.accessor.command)].add(both)
    return pairs


def _names(accesses: Sequence[TrackedAccess], kernels: dict[int, Calls]) -> dict[int, AccessId]:
    """The PE and the number of the call of each access to memory, by its call in the records."""
    by_thread = defaultdict[tuple[int, int], list[int]](list)
    for each in accesses:
        program = each.accessor.program
        if program is not None and each.accessor.command in kernels:
            by_thread[each.accessor.command, program.pe].append(each.row.call)
    names: dict[int, AccessId] = {}
    for (command, pe), rows in by_thread.items():
        numbers = [n for n, each in enumerate(kernels[command][pe]) if each.cell >= 0]
        assert all(one < other for one, other in pairwise(sorted(rows)))
        names |= {call: (pe, number) for call, number in zip(sorted(rows), numbers, strict=True)}
    return names


def cells(calls: Calls, pairs: Pairs) -> set[int]:
    return {calls[pe][number].cell for pair in pairs for pe, number in pair}


def compare(seeds: range) -> int:
    """Compare the kernels of seeds; the number of those with a race."""
    kernels = [random_calls(Random(seed)) for seed in seeds]
    racy = 0
    for seed, calls, found in zip(seeds, kernels, reported(kernels), strict=True):
        expected = races_in_all_orders(calls)
        racy += bool(expected)
        # A later access stands for an earlier one of the same cell that is before it.
        assert found <= expected, f"seed {seed}: {found - expected} in {calls}"
        assert cells(calls, found) == cells(calls, expected), f"seed {seed}: {calls}"
    return racy


@pytest.mark.parametrize("part", range(2))
def test_reports_are_the_races_of_a_search_over_all_orders(part: int) -> None:
    count = 100
    racy = compare(range(part * count, (part + 1) * count))
    # Both verdicts are tested.
    assert count // 10 < racy < count * 9 // 10


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_reports_of_a_thousand_kernels_are_the_races_of_all_orders(part: int) -> None:
    # A kernel that differs is an error of `compare`, and both verdicts are tested.
    assert 10 < compare(range(1000 + part * 100, 1100 + part * 100)) < 90
