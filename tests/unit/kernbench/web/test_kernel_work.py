"""The work of kernels is counted from the records of a run."""

from pathlib import Path

import pytest

from kernbench.run_records import RecordedRun, open_run
from kernbench.web.kernel_work import kernel_work
from tests.support.web_runs import write_page_run


@pytest.fixture(name="records")
def _records(tmp_path: Path) -> RecordedRun:
    return open_run(write_page_run(tmp_path / "run"))


def test_the_work_of_a_kernel_is_counted_from_shapes_and_bytes(records: RecordedRun) -> None:
    (work,) = kernel_work(records)
    assert (work.kernel, work.flops, work.hbm_bytes) == ("product", 2 * 32 * 16 * 16, 4096 + 2048)
    assert work.gflops == work.flops / 5.0
