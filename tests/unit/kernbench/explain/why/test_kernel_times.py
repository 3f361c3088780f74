"""The launches of each kernel, of hand-made runs."""

from pathlib import Path

from kernbench.explain.records import open_run
from kernbench.explain.why.kernel_times import KernelTime, kernel_times
from tests.support.hand_made_runs import a_slot_and_its_credit
from tests.support.run_tables import Row, program, tables, write_run


def launch(command: int, kernel: str, *of_pes: tuple[int, int]) -> list[Row]:
    return [
        program(10 * command + pe, *times, cube=0, pe=pe, command=command, kernel=kernel)
        for pe, times in enumerate(of_pes, start=1)
    ]


def test_a_launch_lasts_from_its_first_pe_to_its_last_one(tmp_path: Path):
    programs = [
        *launch(1, "norm", (100, 300), (120, 350)),
        *launch(2, "add", (400, 500), (410, 480), (405, 700)),
        *launch(3, "norm", (800, 810)),
        program(0, 0, 1000),
    ]
    records = open_run(write_run(tmp_path / "run", [tables(programs=programs)], 1000))
    assert kernel_times(records) == [
        KernelTime("add", launches=1, pes=3, time_ps=300, longest_ps=300),
        KernelTime("norm", launches=2, pes=2, time_ps=260, longest_ps=250),
    ]


def test_launches_of_all_ranks_are_added(tmp_path: Path):
    records = open_run(write_run(tmp_path / "run", a_slot_and_its_credit(), 1000))
    (kernel,) = kernel_times(records)
    assert (kernel.launches, kernel.time_ps) == (2, 340 + 590)


def test_a_run_without_kernels_has_none(tmp_path: Path):
    records = open_run(write_run(tmp_path / "run", [tables(programs=[program(0, 0, 9)])], 9))
    assert kernel_times(records) == []
