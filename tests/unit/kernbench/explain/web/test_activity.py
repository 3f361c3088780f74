"""The intervals of a page are those of the tables; what is merged keeps its counters."""

from pathlib import Path

import numpy as np
import pytest

from kernbench.explain.records import RecordedRun, open_run
from kernbench.explain.web.activity import PageActivity
from tests.support.web_runs import TOTAL_PS, write_page_run


@pytest.fixture(name="records")
def _records(tmp_path: Path) -> RecordedRun:
    return open_run(write_page_run(tmp_path / "run"))


def test_every_operation_kernel_and_wait_is_an_interval(records: RecordedRun) -> None:
    activity = PageActivity(records)
    # SIP 0: 3 operations, 2 programs, 3 waits, 2 commands of which one waits. SIP 1: one operation
    # and one program.
    intervals = activity.intervals()
    assert activity.operations == len(intervals["track"]) == 13
    assert activity.joined_tracks == 0
    lengths = np.subtract(intervals["end_ps"], intervals["begin_ps"]).tolist()
    assert (intervals["active_ps"], set(intervals["count"])) == (lengths, {1})


def test_merged_intervals_keep_the_counters(records: RecordedRun) -> None:
    all_of_them, merged = PageActivity(records), PageActivity(records, most_intervals=12)
    assert merged.counters() == all_of_them.counters()
    intervals = merged.intervals()
    assert len(intervals["track"]) <= 12
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


def test_streams_have_their_commands_and_their_waits(records: RecordedRun) -> None:
    tracks = {track.engine: track for track in PageActivity(records).tracks if track.pe == -1}
    commands, waits = tracks["stream 0"], tracks["waits in stream 0"]
    assert (commands.begins.tolist(), commands.ends.tolist()) == ([0, 500], [500, 2000])
    assert (waits.begins.tolist(), waits.ends.tolist()) == ([100], [500])
    assert [waits.names[code] for code in waits.name_codes] == ["kernel 'product'"]
