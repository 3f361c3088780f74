"""The work of kernels is counted from the records of a run."""

from pathlib import Path

import pytest

from kernbench.explain.records import RecordedRun, open_run
from kernbench.explain.web.kernel_work import kernel_work
from tests.support.run_tables import op, program, step, tables, write_run
from tests.support.web_runs import write_page_run


@pytest.fixture(name="records")
def _records(tmp_path: Path) -> RecordedRun:
    return open_run(write_page_run(tmp_path / "run"))


def test_the_work_of_a_kernel_is_counted_from_shapes_and_bytes(records: RecordedRun) -> None:
    (work,) = kernel_work(records)
    assert (work.kernel, work.flops, work.hbm_bytes) == ("product", 2 * 32 * 16 * 16, 4096 + 2048)
    assert work.gflops == work.flops / 5.0


def test_a_kernel_beside_a_collective_has_its_own_work_alone(tmp_path: Path) -> None:
    pe = {"cube": 0, "pe": 0}
    hbm = 1 << 37
    ops = [
        op("pe_dma", "load", 25, 29, read_address=hbm, nbytes=64, step=1, **pe),
        # Requested while the collective runs, and after it.
        op("pe_dma", "load", 40, 44, read_address=hbm, nbytes=64, step=1, **pe),
        op("pe_dma", "store", 70, 80, address=hbm, nbytes=32, step=1, **pe),
        op("pe_dma", "load", 35, 39, read_address=hbm, nbytes=16, step=3, **pe),
    ]
    programs = [
        program(1, 10, 90, thread="kernels", kernel="product", **pe),
        program(2, 30, 60, thread="collectives", kernel="all_reduce", **pe),
    ]
    steps = [
        step(1, "composite", 10, 12, step=1, issued_ps=12),
        step(1, "wait", 12, 90, step=2, issued_ps=12),
        step(2, "load", 30, 60, step=3, issued_ps=35),
    ]
    run = write_run(tmp_path / "overlapped", [tables(ops, programs, steps)], 100)
    found = {work.kernel: work.hbm_bytes for work in kernel_work(open_run(run))}
    assert found == {"product": 64 + 64 + 32, "all_reduce": 16}
