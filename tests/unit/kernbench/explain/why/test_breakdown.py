"""The time of ranks and PEs by parts, of hand-made runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kernbench.explain.records import RecordedRun, open_run
from kernbench.explain.why.breakdown import pe_times, rank_time, worst
from kernbench.explain.why.parts import TimePart
from tests.support.hand_made_runs import a_slot_and_its_credit, one_kernel
from tests.support.run_tables import Row, command, op, program, step, tables, write_run

COMPUTE, MEMORY, COMMUNICATION, LAUNCH, IDLE = TimePart


def records(
    tmp_path: Path, *sips: Mapping[str, Sequence[Row]], total_ps: int = 1000
) -> RecordedRun:
    return open_run(write_run(tmp_path / "run", sips, total_ps))


def parts(tmp_path: Path, sip: Mapping[str, Sequence[Row]], total_ps: int = 1000) -> list[int]:
    found = rank_time(records(tmp_path, sip, total_ps=total_ps), 0)
    assert sum(found.parts_ps.values()) == found.total_ps == total_ps
    return [found.parts_ps[part] for part in TimePart]


def test_a_kernel_computes_stalls_and_is_launched(tmp_path: Path):
    # load 200-300, add 300-350, store 350-900; before and after, the launch is on its way.
    assert parts(tmp_path, one_kernel()) == [50, 650, 0, 300, 0]


def test_slots_and_credits_are_communication_and_a_finished_rank_is_idle(tmp_path: Path):
    both = records(tmp_path, *a_slot_and_its_credit())
    first, second = (rank_time(both, sip).parts_ps for sip in (0, 1))
    assert list(first.values()) == [0, 0, 340, 560, 100]
    assert list(second.values()) == [0, 0, 590, 410, 0]


def test_computation_hides_what_other_pes_wait_for(tmp_path: Path):
    two = tables(
        programs=[program(1, 0, 100, cube=0, pe=0), program(2, 0, 100, cube=0, pe=1)],
        steps=[
            step(1, "math add", 20, 60),
            step(2, "recv", 0, 50),
            step(2, "load", 50, 70),
            step(2, "barrier", 70, 100),
        ],
    )
    assert parts(tmp_path, two, 100) == [40, 10, 50, 0, 0]


def test_a_product_that_waits_for_operands_computes_only_while_its_engine_does(tmp_path: Path):
    streamed = tables(
        ops=[op("pe_gemm", "gemm", 30, 60, cube=0, pe=0)],
        programs=[program(1, 0, 100, cube=0, pe=0)],
        steps=[step(1, "dot", 0, 100, issued_ps=3, cause="operand")],
    )
    assert parts(tmp_path, streamed, 100) == [30, 70, 0, 0, 0]
    [pe] = pe_times(records(tmp_path / "again", streamed, total_ps=100), 0)
    assert (pe.issue_ps, list(pe.parts_ps.values())) == (3, [30, 67, 0, 0])


def test_an_engine_in_the_background_computes_while_its_kernel_receives(tmp_path: Path):
    overlapped = tables(
        ops=[op("pe_gemm", "gemm", 10, 60, cube=0, pe=0)],
        programs=[program(1, 0, 100, cube=0, pe=0)],
        steps=[step(1, "recv", 0, 100, cause="slot")],
    )
    assert parts(tmp_path, overlapped, 100) == [50, 0, 50, 0, 0]


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        ("operand", MEMORY),
        ("memory", MEMORY),
        ("slot", COMMUNICATION),
        ("credit", COMMUNICATION),
        ("peer", COMMUNICATION),
        ("engine", COMPUTE),
        ("launch", LAUNCH),
    ],
)
def test_a_wait_belongs_to_what_it_waited_for(tmp_path: Path, cause: str, expected: TimePart):
    waiting = tables(
        programs=[program(1, 0, 10, cube=0, pe=0)], steps=[step(1, "wait", 0, 10, cause=cause)]
    )
    assert parts(tmp_path, waiting, 10) == [10 if part is expected else 0 for part in TimePart]


@pytest.mark.parametrize(
    ("engine", "name", "expected"),
    [
        ("pe_dma", "load", MEMORY),
        ("pe_dma", "ipcq_recv", COMMUNICATION),
        ("pe_ipcq", "arrival", COMMUNICATION),
        ("pe_gemm", "gemm", COMPUTE),
    ],
)
def test_a_wait_without_cause_belongs_to_what_released_it(
    tmp_path: Path, engine: str, name: str, expected: TimePart
):
    waiting = tables(
        ops=[op(engine, name, 0, 10, cube=0, pe=0)],
        programs=[program(1, 0, 10, cube=0, pe=0)],
        steps=[step(1, "wait", 0, 10, released_by=0)],
    )
    assert parts(tmp_path, waiting, 10)[expected] == 10


def test_a_copy_of_the_host_is_memory_and_hidden_by_nothing_it_follows(tmp_path: Path):
    copied = tables(
        programs=[program(0, 0, 100)],
        steps=[step(0, "copy", 0, 80), step(0, "host", 80, 100)],
        commands=[command(0, "MmuMapMsg", 0, 5, 30), command(1, "MemoryWriteMsg", 20, 40, 80)],
    )
    assert parts(tmp_path, copied, 100) == [20, 40, 0, 40, 0]


def test_a_command_without_answer_lasts_until_the_end(tmp_path: Path):
    open_end = tables(commands=[command(0, "KernelLaunchMsg", 40, 50, -1)])
    assert parts(tmp_path, open_end, 100) == [0, 0, 0, 60, 40]


def test_the_kernels_of_a_pe_are_tiled_by_issue_and_waits(tmp_path: Path):
    [pe] = pe_times(records(tmp_path, one_kernel()), 0)
    assert (pe.cube, pe.pe, pe.kernel_ps, pe.issue_ps) == (2, 1, 700, 9)
    assert list(pe.parts_ps.values()) == [47, 97 + 547, 0, 0]


def test_the_worst_pe_waits_longest_for_anything_but_computation(tmp_path: Path):
    two = tables(
        programs=[program(1, 0, 100, cube=0, pe=0), program(2, 0, 100, cube=0, pe=3)],
        steps=[
            step(1, "math add", 0, 60),
            step(1, "load", 60, 100),
            step(2, "math add", 0, 30),
            step(2, "recv", 30, 100),
        ],
        # Of another PE, and so no computation of these two.
        ops=[op("pe_math", "add", 30, 100, cube=1, pe=0)],
    )
    times = pe_times(records(tmp_path, two, total_ps=100), 0)
    found = worst(times)
    assert [each.kernel_ps for each in times] == [100, 100]
    assert found is not None
    assert (found.pe, worst([])) == (3, None)


def test_a_rank_without_kernels_has_no_pes(tmp_path: Path):
    assert pe_times(records(tmp_path, tables(), total_ps=10), 0) == []
