"""Replays of hand-made launches: every time can be added by hand."""

from collections.abc import Mapping, Sequence

from kernbench.explain.advice.launches import joint_launches, rank_launches
from kernbench.explain.advice.replay import Changes, LaunchReplay
from kernbench.explain.advice.steps import LaunchSteps, RankSteps
from kernbench.explain.why.slots import SlotJoins
from runtime.core.run_tables import OPS
from tests.support.hand_made_runs import a_slot_and_its_credit, one_kernel
from tests.support.run_tables import Row, command, op, program, step, tables
from tests.support.simulated_runs import of_tables


def replay(sips: Sequence[Mapping[str, Sequence[Row]]]) -> LaunchReplay:
    """A replay of the first launch of a run."""
    records = of_tables(sips, 1000)
    launches = joint_launches({sip: rank_launches(records, sip) for sip in records.sips})
    ranks = {sip: RankSteps(records, sip) for sip in records.sips}
    return LaunchReplay(LaunchSteps.of(launches[0], ranks), SlotJoins(records.tables(OPS)))


def two_pes_and_a_barrier() -> Mapping[str, Sequence[Row]]:
    """PE 0 works for 100 ps and PE 1 for 300; the barrier takes 20; then 50 ps on both."""
    launch = {"command": 0, "kernel": "k", "thread": "kernels", "cube": 0}
    steps, number = list[Row](), 0
    for pe, work in ((0, 100), (1, 300)):
        for operation, begin, end in (
            ("math add", 0, work),
            ("barrier", work, 320),
            ("math add", 320, 370),
        ):
            number += 1
            more = {"issued_ps": begin, "line": f"k.py:{operation}"}
            steps.append(step(pe + 1, operation, begin, end, step=number, **more))
    return tables(
        programs=[
            program(1, 0, 370, pe=0, **launch),
            program(2, 0, 370, pe=1, **launch),
            program(0, 0, 1000),
        ],
        steps=steps,
        commands=[command(0, "KernelLaunchMsg", 0, 0, 1000)],
    )


def test_a_replay_without_changes_has_the_recorded_time():
    assert replay([one_kernel()]).time_ps(Changes()) == 700
    assert replay([two_pes_and_a_barrier()]).time_ps(Changes()) == 370
    # From the begin of the last rank: both begin at 110.
    assert replay(a_slot_and_its_credit()).time_ps(Changes()) == 590


def test_a_step_of_one_pe_that_is_shorter_shortens_the_launch():
    assert replay([one_kernel()]).time_ps(Changes(steps={(0, 1): -40})) == 660


def test_a_barrier_waits_for_the_pe_that_is_last_now():
    barrier = replay([two_pes_and_a_barrier()])
    # Row 3 is the work of PE 1: 100 ps less, and the other PE had 200 to spare.
    assert barrier.time_ps(Changes(steps={(0, 3): -100})) == 270
    assert barrier.time_ps(Changes(steps={(0, 3): -250})) == 170
    assert barrier.time_ps(Changes(steps={(0, 0): 100})) == 370


def test_a_dropped_barrier_lets_each_pe_go_on():
    dropped = {(0, 1), (0, 4)}
    assert replay([two_pes_and_a_barrier()]).time_ps(Changes(dropped=dropped)) == 350


def test_a_message_that_leaves_later_comes_later():
    launch = replay(a_slot_and_its_credit())
    # Row 1 is the second send of SIP 0, whose slot ends the wait of SIP 1.
    assert launch.time_ps(Changes(steps={(0, 0): 30})) == 620


def test_a_wait_ends_with_the_operation_that_an_earlier_step_requested():
    pe = {"cube": 0, "pe": 0}
    records = tables(
        ops=[op("pe_dma", "load", 10, 210, requested_ps=10, **pe)],
        programs=[
            program(1, 0, 260, command=0, kernel="k", thread="kernels", **pe),
            program(0, 0, 1000),
        ],
        steps=[
            step(1, "load_async", 0, 10, step=1, issued_ps=10),
            step(1, "math add", 10, 110, step=2),
            step(1, "wait", 110, 210, step=3, released_by=0, cause="operand"),
            step(1, "math add", 210, 260, step=4),
        ],
        commands=[command(0, "KernelLaunchMsg", 0, 0, 1000)],
    )
    launch = replay([records])
    # The computation hides behind the load, and the load behind the computation.
    assert launch.time_ps(Changes(steps={(0, 1): -90})) == 260
    assert launch.time_ps(Changes(ops={(0, 0): -60})) == 200
    assert launch.time_ps(Changes(ops={(0, 0): -150})) == 160
