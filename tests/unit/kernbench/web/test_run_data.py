"""The data of a page are those of the tables of the run; what is merged keeps its sums."""

from pathlib import Path

import numpy as np
import pytest

from kernbench.run_records import RecordedRun, open_run
from kernbench.web.activity import PageActivity
from kernbench.web.kernel_work import kernel_work
from kernbench.web.loads import COUNTERS, PageLoads
from kernbench.web.waits import link_waits, program_waits
from runtime.core.run_tables import LINKS
from tests.support.web_runs import LINK, TOTAL_PS, write_page_run


@pytest.fixture(name="records")
def _records(tmp_path: Path) -> RecordedRun:
    return open_run(write_page_run(tmp_path / "run"))


@pytest.mark.parametrize("most_rows", [100, 8, 3])
def test_merged_bins_keep_the_sums_of_every_link(records: RecordedRun, most_rows: int) -> None:
    loads = PageLoads(records, most_rows)
    assert loads.rows.shape[1] <= max(most_rows, 3)
    table = records.table(LINKS, 0)
    for at, counter in enumerate(COUNTERS, start=3):
        for link, name in enumerate(loads.names):
            of_link = table.text("link").equal(name)
            assert loads.rows[at][loads.rows[1] == link].sum() == table[counter][of_link].sum()


def test_bins_that_fit_are_those_of_the_tables(records: RecordedRun) -> None:
    loads = PageLoads(records)
    assert (loads.bin_ps, loads.rows.shape[1]) == (1024, 9)


def test_every_operation_kernel_and_wait_is_an_interval(records: RecordedRun) -> None:
    activity = PageActivity(records)
    # 3 operations, 2 programs and 3 waits of SIP 0; one operation and one program of SIP 1.
    assert activity.operations == len(activity.intervals()["track"]) == 10
    assert activity.resolution_ps == 0


def test_merged_intervals_keep_the_counters(records: RecordedRun) -> None:
    all_of_them, merged = PageActivity(records), PageActivity(records, most_intervals=8)
    assert merged.counters() == all_of_them.counters()
    intervals = merged.intervals()
    assert len(intervals["track"]) <= 8
    assert sum(intervals["count"]) == merged.operations


def test_the_active_time_in_bins_is_that_of_the_engine(records: RecordedRun) -> None:
    activity = PageActivity(records)
    cells, bin_ps = activity.cells(), activity.bin_ps
    dma = [at for at, engine in enumerate(cells["engine"]) if engine == "pe_dma"]
    found = {cells["bin"][at]: cells["busy_ps"][at] for at in dma}
    # Loads from 1,000 to 3,000 ps, stores from 5,000 to 6,000 ps.
    edges = np.arange(0, TOTAL_PS, bin_ps)
    expected = {
        int(begin) // bin_ps: sum(
            max(0, min(int(begin) + bin_ps, end) - max(int(begin), start))
            for start, end in ((1000, 3000), (5000, 6000))
        )
        for begin in edges
    }
    assert found == {at: busy for at, busy in expected.items() if busy}


def test_the_counters_of_a_track_are_sums_of_its_operations(records: RecordedRun) -> None:
    counters = PageActivity(records).counters()
    at = counters["engine"].index("pe_dma")
    names = ("operations", "nbytes", "busy_ps", "queued_ps", "link_ps")
    assert [counters[name][at] for name in names] == [2, 6144, 3000, 0, 300]
    assert counters["queued_ps"][counters["engine"].index("pe_gemm")] == 500


def test_waits_are_by_statement_the_longest_first(records: RecordedRun) -> None:
    waits = program_waits(records)
    assert waits["line"] == ["k.py:4", "k.py:3", "k.py:5"]
    assert waits["waited_ps"] == [2000, 1900, 1000]
    assert link_waits(records) == {
        "sip": [0],
        "link": [LINK],
        "operation": ["pe_dma load"],
        "count": [1],
        "waited_ps": [300],
    }


def test_the_work_of_a_kernel_is_counted_from_shapes_and_bytes(records: RecordedRun) -> None:
    (work,) = kernel_work(records)
    assert (work.kernel, work.flops, work.hbm_bytes) == ("product", 2 * 32 * 16 * 16, 4096 + 2048)
    assert work.gflops == work.flops / 5.0
