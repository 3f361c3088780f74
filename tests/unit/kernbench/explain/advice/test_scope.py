"""The part of a run that is selected, and errors for parts that it does not have."""

import pytest

from kernbench.explain.advice.scope import RunSelection, parse_time, scope_of
from kernbench.explain.records import RecordedRun
from runtime.core.errors import UsageError
from tests.support.hand_made_runs import a_slot_and_its_credit, one_kernel
from tests.support.run_tables import command, program, step, tables
from tests.support.simulated_runs import of_tables


def three_launches() -> RecordedRun:
    """A launch that warms up, an event, two launches of which one is `b`, and an event."""
    pe = {"cube": 0, "pe": 0, "thread": "kernels"}
    return of_tables(
        [
            tables(
                programs=[
                    program(1, 100, 200, command=1, kernel="a", **pe),
                    program(2, 400, 500, command=3, kernel="a", **pe),
                    program(3, 600, 900, command=4, kernel="b", **pe),
                    program(0, 0, 1500, thread="rank"),
                ],
                steps=[step(number, "load", 100, 200, step=number) for number in (1, 2, 3)],
                commands=[
                    command(0, "MemoryWriteMsg", 0, 10, 90),
                    command(1, "KernelLaunchMsg", 0, 90, 210),
                    command(2, "", 0, 250, 260, why="an event"),
                    command(3, "KernelLaunchMsg", 0, 300, 510),
                    command(4, "KernelLaunchMsg", 0, 510, 910),
                    command(5, "", 0, 920, 930, why="an event"),
                    command(6, "MemoryReadMsg", 0, 1000, 1500),
                ],
            )
        ],
        1500,
    )


def names(selection: RunSelection) -> list[tuple[str, int]]:
    return [(each.name, each.number) for each in scope_of(three_launches(), selection).launches]


def test_the_measured_part_is_what_two_events_enclose():
    scope = scope_of(three_launches(), RunSelection())
    assert names(RunSelection()) == [("a", 1), ("b", 0)]
    assert (scope.begin_ps, scope.end_ps, scope.total_ps) == (400, 900, 500)
    assert scope.around == (
        "before 0.400 ns (1 other launch 0 ns, 1 copy to the device 0 ns, 1 other command 0 ns); "
        "behind 0.600 ns (1 copy to the host 0 ns, 1 other command 0 ns)"
    )


def test_without_events_the_measured_part_is_from_the_first_launch_to_the_last():
    scope = scope_of(of_tables([one_kernel()], 1000), RunSelection())
    assert (scope.begin_ps, scope.end_ps) == (200, 900)


def test_a_kernel_has_its_launches_and_the_gaps_that_no_other_launch_fills():
    scope = scope_of(three_launches(), RunSelection(kernel="a"))
    assert [(before.number, after.number) for before, after in scope.gaps()] == [(0, 1)]
    assert scope.total_ps == 100 + 200 + 100
    assert names(RunSelection(launch=2)) == [("b", 0)]
    assert names(RunSelection(time_ps=(0, 450))) == [("a", 0), ("a", 1)]


def test_launches_of_several_ranks_with_one_number_are_one():
    [launch] = scope_of(of_tables(a_slot_and_its_credit(), 1000), RunSelection()).launches
    assert [(each.sip, each.time_ps) for each in launch.of_ranks] == [(0, 340), (1, 590)]
    assert launch.time_ps == 590


def test_a_run_without_launches_is_its_own_scope():
    records = of_tables([tables(programs=[program(0, 0, 70, thread="rank")])], 70)
    scope = scope_of(records, RunSelection())
    assert (scope.begin_ps, scope.end_ps, list(scope.launches)) == (0, 70, [])


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (RunSelection(kernel="c"), "no launch of it; known: a, b$"),
        (RunSelection(launch=3), "there are 3, numbered from 0"),
        (RunSelection(rank=1), "the run has the ranks 0 to 0"),
        (RunSelection(time_ps=(1500, 1600)), "the run ends at 1.500 ns, before 1.500 ns"),
    ],
)
def test_a_part_that_a_run_does_not_have_is_an_error(selection: RunSelection, message: str):
    with pytest.raises(UsageError, match=message):
        scope_of(three_launches(), selection)


def test_an_interval_is_in_nanoseconds():
    assert parse_time("1..2.5") == (1000, 2500)
    for text in ("1", "2..1", "a..b", "-1..2", "1..inf"):
        with pytest.raises(UsageError, match=r"expected A\.\.B"):
            parse_time(text)
