"""The loads of a page are those of the tables; what is merged keeps its sums."""

from pathlib import Path

import pytest

from kernbench.explain.records import RecordedRun, open_run
from kernbench.explain.web.loads import COUNTERS, PageLoads
from runtime.core.run_tables import LINKS
from tests.support.web_runs import write_page_run


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
