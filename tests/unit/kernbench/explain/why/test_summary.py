"""The lines at the end of a run that show where its time went."""

from pathlib import Path

from kernbench.explain.records import open_run
from kernbench.explain.why.summary import summary_lines
from tests.support.hand_made_runs import a_slot_and_its_credit, one_kernel
from tests.support.run_tables import program, tables, write_run

PARTS = (
    "time spent      compute 5.0 %, memory stall 65.0 %, exposed communication 0.0 %, "
    "launch 30.0 %, idle 0.0 %"
)
BUSIEST = "busiest         engine sip0.cube2.pe1.pe_dma 63.4 %, engine sip0.cube2.pe1.pe_math 4.7 %"

BOUND = (
    "bound           at least 0.848 ns, 84.8 % of the run, in any order: "
    "the steps that wait for each other, without queues"
)


def test_a_run_is_explained_in_one_line(tmp_path: Path):
    records = open_run(write_run(tmp_path / "run", [one_kernel()], 1000))
    assert list(summary_lines(records)) == [PARTS]


def test_on_request_a_run_is_explained_in_five_lines(tmp_path: Path):
    records = open_run(write_run(tmp_path / "run", [one_kernel()], 1000))
    assert list(summary_lines(records, verbose=True)) == [
        PARTS,
        "critical path   memory 49.2 %, launch 29.0 %, queue 15.2 %",
        "source lines    k.py:3 55.0 %, p.py:3 30.0 %, k.py:1 10.0 %",
        BUSIEST,
        BOUND,
    ]


def test_parts_are_means_over_the_ranks(tmp_path: Path):
    records = open_run(write_run(tmp_path / "run", a_slot_and_its_credit(), 1000))
    first = next(summary_lines(records))
    # 34.0 % and 59.0 % communication, 56.0 % and 41.0 % launch, 10.0 % and 0.0 % idle.
    assert "exposed communication 46.5 %, launch 48.5 %, idle 5.0 %" in first


def test_a_run_that_took_no_time_has_no_lines(tmp_path: Path):
    records = open_run(write_run(tmp_path / "run", [tables(programs=[program(0, 0, 0)])], 0))
    assert list(summary_lines(records)) == []
